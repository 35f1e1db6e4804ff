"""The softmax over allowed entries, with a backward that does not mask again.

The weights of hidden entries are 0, so torch's backward of the softmax gives them the gradient 0. With two
operations for the masks, a training step of attention spends as much time on masks as on the softmax.

On a CPU, torch computes rows that are shorter than the processor's vectors number by number, which takes up to ten
times as long: such rows are padded."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.kernels.elementwise import INTEGERS, LEAST_FOR_BITS, NO_REUSE, Reuse, nonlinear
from archlang.backend.runtime.stacking import is_large_on_cpu, is_transformed

# The numbers of the widest vectors of processors, in 32 bits.
_VECTOR = 16
# The shortest rows, and the fewest numbers, for which padding is faster.
_SHORTEST = 4
_FEWEST = 1024


def masked_softmax(
    x: Float[Tensor, "*b"], allowed: Bool[Tensor, "..."] | None, axis: int = -1, reuse: Reuse = NO_REUSE
) -> Float[Tensor, "*b"]:
    """Returns the softmax over the allowed entries of an axis; the others have weights 0.

    A line without allowed entries, such as a query without keys, has weights 0 and finite gradients.

    Args:
        allowed: which entries are allowed, of a shape that broadcasts to that of x; None for all"""
    hidden = None if allowed is None else ~allowed
    # torch.compile and torch.export trace torch's own operations.
    if torch.compiler.is_compiling() or is_transformed():
        return _plainly(x, hidden, axis)
    if hidden is None and not _has_short_rows(x, axis):
        return x.softmax(axis)
    return _Softmax(hidden, None, axis, _has_short_rows(x, axis), x.dtype)(x, reuse)


def causal_softmax(x: Float[Tensor, "*b n m"], first_row: int, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b n m"]:
    """Returns the softmax of row i over the columns up to `first_row` + i; the others have weights 0."""
    n, m = x.shape[-2:]
    if torch.compiler.is_compiling() or is_transformed() or _has_short_rows(x, -1) or first_row < 0:
        return masked_softmax(x, torch.ones(n, m, dtype=torch.bool, device=x.device).tril(first_row), -1, reuse)
    # Only the last columns have hidden entries.
    hidden = torch.ones(n, max(0, m - first_row), dtype=torch.bool, device=x.device).triu(1)
    return _Softmax(hidden, first_row, -1, False, x.dtype)(x, reuse)


def _plainly(x: Tensor, hidden: Tensor | None, axis: int) -> Tensor:
    return x.softmax(axis) if hidden is None else _filled(x, hidden).softmax(axis).masked_fill(hidden, 0.0)


def _filled(x: Tensor, hidden: Tensor) -> Tensor:
    # The least number, not -inf: a line without allowed entries would have NaN. `where` is faster than `masked_fill`.
    return torch.where(hidden, torch.finfo(x.dtype).min, x)


def _softmax_of_short_rows(x: Tensor, hidden: Tensor | None) -> Tensor:
    rows = x.new_full((*x.shape[:-1], _VECTOR), -torch.inf)
    scores = rows[..., : x.shape[-1]].copy_(x)
    if hidden is not None:
        scores.masked_fill_(hidden, torch.finfo(x.dtype).min)
    return rows.softmax(-1)[..., : x.shape[-1]].contiguous()


def _has_short_rows(x: Tensor, axis: int) -> bool:
    if x.device.type != "cpu" or x.dtype != torch.float32 or axis not in (-1, x.dim() - 1):
        return False
    return _SHORTEST <= x.shape[-1] < _VECTOR and x.numel() >= _FEWEST


@dataclass(frozen=True, eq=False)
class _Softmax:
    """The softmax with a mask, and its derivative. `hidden` has the columns from `first` on if the first column of each
    row is allowed. `dtype` is that of the scores."""

    hidden: Tensor | None
    first: int | None
    axis: int
    is_short: bool
    dtype: torch.dtype

    def __call__(self, x: Tensor, reuse: Reuse) -> Tensor:
        return nonlinear(x, self.weights, self.derivative, reuse)

    def weights(self, x: Tensor, out: Tensor | None) -> Tensor:
        if self.is_short:
            weights = _softmax_of_short_rows(x, self.hidden)
            return weights if self.hidden is None else weights.masked_fill_(self.hidden, 0.0)
        assert self.hidden is not None
        if self.first is None:
            return self._by_bits(x, out) if is_large_on_cpu(x, x.numel(), LEAST_FOR_BITS) else self._by_marks(x)
        filled = x.clone() if out is None else out
        filled[..., self.first :].masked_fill_(self.hidden, -torch.inf)
        return self._of(filled)

    def _by_marks(self, x: Tensor) -> Tensor:
        assert self.hidden is not None
        return self._of(_filled(x, self.hidden)).mul_(~self.hidden)

    def _by_bits(self, x: Tensor, out: Tensor | None) -> Tensor:
        """Does what `_by_marks` does; `where` takes up to ten times as long if marks follow no pattern."""
        assert self.hidden is not None
        integer = INTEGERS[x.element_size()]
        least = torch.tensor(torch.finfo(x.dtype).min, dtype=x.dtype).view(integer)
        of_allowed = self.hidden.to(integer) - 1  # all bits are 1 where an entry is allowed
        bits = torch.bitwise_and(x.view(integer), of_allowed, out=None if out is None else out.view(integer))
        weights = self._of(bits.bitwise_or_(~of_allowed & least).view(x.dtype))
        if weights.dtype != x.dtype:  # under autocast
            return weights.mul_(~self.hidden)
        weights.view(integer).bitwise_and_(of_allowed)
        return weights

    def _of(self, filled: Tensor) -> Tensor:
        if filled.device.type != "cpu" or torch.is_autocast_enabled("cpu") or not self._by_rows(filled):
            return filled.softmax(self.axis)
        return torch._softmax(filled, self.axis, False, out=filled)

    def _by_rows(self, x: Tensor) -> bool:
        """Whether torch computes one row after the other, so that a result may lie where its argument was."""
        return self.axis in (-1, x.dim() - 1) and x.is_contiguous()

    def derivative(self, gradient: Tensor, weights: Tensor, out: Tensor | None) -> Tensor:
        # Autograd can differentiate these operations again.
        if self.is_short:
            product = gradient * weights
            return product - weights * product.sum(-1, keepdim=True)
        # Under autocast on a GPU, weights are wider than x.
        if out is None or not self._by_rows(out):
            return torch.ops.aten._softmax_backward_data(gradient, weights, self.axis, weights.dtype).to(self.dtype)  # type: ignore[no-any-return]
        into = torch.ops.aten._softmax_backward_data.out
        return into(gradient, weights, self.axis, weights.dtype, grad_input=out)  # type: ignore[no-any-return]
