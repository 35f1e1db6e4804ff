"""The softmax over allowed entries, with a backward that does not mask again.

The weights of hidden entries are 0, so torch's backward of the softmax gives them the gradient 0. With two
operations for the masks, a training step of attention spends as much time on masks as on the softmax.

On a CPU, torch computes rows that are shorter than the processor's vectors number by number, which takes up to ten
times as long: such rows are padded."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.stacking import is_transformed

# The numbers of the widest vectors of processors, in 32 bits.
_VECTOR = 16
# The shortest rows, and the fewest numbers, for which padding is faster.
_SHORTEST = 4
_FEWEST = 1024


def masked_softmax(x: Float[Tensor, "*b"], allowed: Bool[Tensor, "..."] | None, axis: int = -1) -> Float[Tensor, "*b"]:
    """Returns the softmax over the allowed entries of an axis; the others have weights 0.

    A line without allowed entries, such as a query without keys, has weights 0 and finite gradients.

    Args:
        allowed: which entries are allowed, of a shape that broadcasts to that of x; None for all"""
    hidden = None if allowed is None else ~allowed
    # torch.compile and torch.export trace torch's own operations.
    if torch.compiler.is_compiling() or is_transformed():
        return _plainly(x, hidden, axis)
    is_short = _has_short_rows(x, axis)
    if hidden is None and not is_short:
        return x.softmax(axis)
    weights: Tensor = (_MaskedSoftmax.apply if x.requires_grad else _softmax)(x, hidden, None, axis, is_short)
    return weights


def causal_softmax(x: Float[Tensor, "*b n m"], first_row: int) -> Float[Tensor, "*b n m"]:
    """Returns the softmax of row i over the columns up to `first_row` + i; the others have weights 0."""
    n, m = x.shape[-2:]
    if torch.compiler.is_compiling() or is_transformed() or _has_short_rows(x, -1) or first_row < 0:
        return masked_softmax(x, torch.ones(n, m, dtype=torch.bool, device=x.device).tril(first_row))
    # Only the last columns have hidden entries.
    hidden = torch.ones(n, max(0, m - first_row), dtype=torch.bool, device=x.device).triu(1)
    weights: Tensor = (_MaskedSoftmax.apply if x.requires_grad else _softmax)(x, hidden, first_row, -1, False)
    return weights


def _plainly(x: Tensor, hidden: Tensor | None, axis: int) -> Tensor:
    return x.softmax(axis) if hidden is None else _softmax_of_filled(x, hidden, axis).masked_fill(hidden, 0.0)


def _softmax_of_filled(x: Tensor, hidden: Tensor, axis: int) -> Tensor:
    # The least number, not -inf: a line without allowed entries would have NaN. `where` is faster than `masked_fill`.
    return torch.where(hidden, torch.finfo(x.dtype).min, x).softmax(axis)


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


def _softmax(x: Tensor, hidden: Tensor | None, first: int | None, axis: int, is_short: bool) -> Tensor:
    """Returns the weights. `hidden` has the columns from `first` on if the first column of each row is allowed."""
    if is_short:
        weights = _softmax_of_short_rows(x, hidden)
        return weights if hidden is None else weights.masked_fill_(hidden, 0.0)
    assert hidden is not None
    if first is None:
        return _softmax_of_filled(x, hidden, axis).mul_(~hidden)
    filled = x.clone()
    filled[..., first:].masked_fill_(hidden, -torch.inf)
    return filled.softmax(axis)


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, hidden: Tensor | None, first: int | None, axis: int, is_short: bool
    ) -> Tensor:  # Any: torch's context
        weights = _softmax(x, hidden, first, axis, is_short)
        ctx.save_for_backward(weights)
        ctx.axis, ctx.dtype, ctx.is_short = axis, x.dtype, is_short
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None, None]:  # Any: as above
        (weights,) = ctx.saved_tensors
        # Autograd can differentiate these operations again.
        if ctx.is_short:
            product = gradient * weights
            return product - weights * product.sum(-1, keepdim=True), None, None, None, None
        # Under autocast on a GPU, weights are wider than x.
        derivative = torch.ops.aten._softmax_backward_data(gradient, weights, ctx.axis, weights.dtype)
        return derivative.to(ctx.dtype), None, None, None, None
