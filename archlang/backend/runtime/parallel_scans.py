"""Recurrences over all positions of a scan at once: the runtime of what the pass `parallel_scans` makes of scans.

Values of all positions are [p …], p = b n, with the positions of a sample one after the other. A coefficient is
[p h r] or [p h 1]: a number for each row of a matrix in each of h groups of adjacent columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.elementwise_recurrence import elementwise_maximum, elementwise_recurrence
from archlang.backend.runtime.stacking import holds

# The least decay whose logarithm has a finite derivative in every precision.
_LEAST_DECAY = 1e-30
Coefficient = Float[Tensor, "p _h _r"]


@dataclass(frozen=True, eq=False)
class Positions:
    """The samples and the positions of each that are computed at once. The mask is true at real positions."""

    batch: int
    length: int
    mask: Bool[Tensor, "b n"] | None

    def cut(self, value: Float[Tensor, "p *d"]) -> Float[Tensor, "b n *d"]:
        return value.reshape(self.batch, self.length, *value.shape[1:])

    def moves(self) -> Bool[Tensor, "b n"] | None:
        """Returns where a recurrence moves: at the first position too, for samples that have none."""
        if self.mask is None:
            return None
        return torch.cat((torch.ones_like(self.mask[:, :1]), self.mask[:, 1:]), 1)

    def last(self, state: Float[Tensor, "b *d"], initial: Float[Tensor, "b *d"]) -> Float[Tensor, "b *d"]:
        """Returns the state after the last position, which is the initial one of samples that have no position."""
        if self.mask is None:
            return state
        return state.where(self.mask.any(1).reshape(-1, *[1] * (state.dim() - 1)), initial)

    def filled(self, value: Float[Tensor, "b n *d"]) -> Float[Tensor, "p *d"]:
        """Returns a value with that of the first position at padding: 0 times the gradient there must not be NaN."""
        if self.mask is not None:
            mask = self.mask.reshape(*self.mask.shape, *[1] * (value.dim() - 2))
            value = value.where(mask, value[:, :1].detach())
        return value.flatten(0, 1)


def repeated(positions: Positions, value: Any) -> Any:  # Any: a tensor, or a mask or a number
    """Returns a value from outside of the scan, for each position."""
    return value.repeat_interleave(positions.length, 0) if isinstance(value, Tensor) else value


def in_columns(value: Float[Tensor, "p _d"], heads: int) -> Coefficient:
    """Returns the coefficient whose group h has the h-th part of the features as its rows."""
    return value.reshape(len(value), heads, value.shape[1] // heads)


def in_groups(value: Coefficient, times: int) -> Coefficient:
    """Returns the coefficient of more groups: each group is split into some with the same numbers."""
    return value[:, :, None].expand(-1, -1, times, -1).flatten(1, 2)


def to_features(value: Coefficient | float, positions: Float[Tensor, "p _"], width: int) -> Float[Tensor, "p width"]:
    """Returns a coefficient with one row as numbers of each feature."""
    if not isinstance(value, Tensor):
        return positions.new_full((len(positions), width), value)
    return value.expand(-1, -1, width // value.shape[1]).flatten(1)


def elementwise(
    positions: Positions, state: Float[Tensor, "b *d"], a: Tensor | float, c: Tensor | float
) -> tuple[Float[Tensor, "b *d"], Float[Tensor, "p *d"], Float[Tensor, "p *d"]]:
    """Returns the state after the last position, and the states before and after each, by s_i = a_i s_{i-1} + c_i."""
    factor, term = (_per_position(value, positions, state) for value in (a, c))
    moves = positions.moves()
    if moves is not None:
        real = moves.reshape(*moves.shape, *[1] * (state.dim() - 1))
        factor, term = factor.where(real, 1), term.where(real, 0)
    after = elementwise_recurrence(factor, term, state)
    before = torch.cat((state[:, None], after[:, :-1]), 1)
    return positions.last(after[:, -1], state), positions.filled(before), positions.filled(after)


def extremum(
    positions: Positions,
    state: Float[Tensor, "b *d"],
    a: Tensor | float,
    c: Tensor | float,
    takes_term: bool,
    is_least: bool,
) -> tuple[Float[Tensor, "b *d"], Float[Tensor, "p *d"], Float[Tensor, "p *d"]]:
    """Returns what `elementwise` does, for s_i = max(a_i + s_{i-1}, c_i); with `is_least`, for the less of these. Where
    both are equal, the derivative is that of c_i with `takes_term`, else of the state."""
    sign = -1 if is_least else 1
    shift, term = (sign * _per_position(value, positions, state) for value in (a, c))
    moves = positions.moves()
    if moves is not None:
        real = moves.reshape(*moves.shape, *[1] * (state.dim() - 1))
        shift, term = shift.where(real, 0), term.where(real, -torch.inf)
    after = sign * elementwise_maximum(shift, term, sign * state, takes_term)
    before = torch.cat((state[:, None], after[:, :-1]), 1)
    return positions.last(after[:, -1], state), positions.filled(before), positions.filled(after)


def _per_position(value: Tensor | float, positions: Positions, state: Tensor) -> Tensor:
    shape = (positions.batch, positions.length, *state.shape[1:])
    if not isinstance(value, Tensor):
        return state.new_full((), value).expand(shape)
    return positions.cut(value).expand(shape)


# The decay, a, b, the key and the value of an update.
Update = tuple[Coefficient | float, Coefficient | float | None, Coefficient | float | None, Coefficient | float | None,
               Float[Tensor, "p e"] | None]  # fmt: skip


def matrix(
    positions: Positions,
    state: Float[Tensor, "b r e"],
    heads: int,
    updates: Sequence[Update],
    is_multiple: bool,
    queries: Sequence[tuple[bool, Coefficient | float]],
) -> tuple[Tensor, ...]:
    """Returns the state after the last position, and for each query what it reads, [p e], by

        S_i = diag(decay_i) S_{i-1} + b_i (S_{i-1}ᵀ a_i)ᵀ + key_i value_iᵀ,    o_i = S_iᵀ q_i

    in each group of columns. A query with True reads the state before its position. With `is_multiple`, b is the
    multiple of the key by a number of each group. Several updates of a position are computed as one position each."""
    if len(updates) == 1:
        return _one_update(positions, state, heads, *updates[0], is_multiple, queries)
    count = len(updates)
    *coefficients, values = zip(*updates, strict=True)

    def interleaved(parts: Sequence[Any], rest: Tensor) -> Tensor:  # Any: tensors, numbers, or None for 0
        tensors = [part if isinstance(part, Tensor) else rest.new_full((), part or 0.0) for part in parts]
        broadcast: list[Tensor] = torch.broadcast_tensors(rest, *tensors)  # type: ignore[no-untyped-call]
        return torch.stack(broadcast[1:], 1).flatten(0, 1)

    p = positions.batch * positions.length
    narrow, wide = state.new_zeros(p, heads, 1), state.new_zeros(p, state.shape[2])
    decay, a, b, key = (interleaved(parts, narrow) for parts in coefficients)
    mask = None if positions.mask is None else positions.mask.repeat_interleave(count, 1)
    inner = Positions(positions.batch, positions.length * count, mask)
    inner_queries = [
        (is_before, interleaved([query if step == (0 if is_before else count - 1) else None for step in range(count)],
                                narrow))
        for is_before, query in queries
    ]  # fmt: skip
    last, *reads = _one_update(
        inner, state, heads, decay, a, b, key, interleaved(values, wide), is_multiple, inner_queries
    )
    chosen = (0 if is_before else count - 1 for is_before, _ in queries)
    return last, *(read.reshape(p, count, read.shape[-1])[:, step] for read, step in zip(reads, chosen, strict=True))


def _one_update(
    positions: Positions,
    state: Float[Tensor, "b r e"],
    heads: int,
    decay: Coefficient | float,
    a: Coefficient | float | None,
    b: Coefficient | float | None,
    key: Coefficient | float | None,
    value: Float[Tensor, "p e"] | None,
    is_multiple: bool,
    queries: Sequence[tuple[bool, Coefficient | float]],
) -> tuple[Tensor, ...]:
    rows, width = state.shape[1:]
    groups = state.reshape(len(state), rows, heads, width // heads).transpose(1, 2)

    def of_heads(coefficient: Coefficient | float | None, size: int | None = rows) -> Any:  # Any: a tensor, or None
        if coefficient is None:
            return None
        if not isinstance(coefficient, Tensor):
            return state.new_full((), coefficient).expand(positions.batch, heads, positions.length, size or 1)
        numbers = positions.cut(coefficient).transpose(1, 2)
        return numbers.expand(positions.batch, heads, positions.length, size or numbers.shape[-1])

    if value is None:
        key, value = 0.0, state.new_zeros(positions.batch * positions.length, width)
    values = of_heads(in_columns(value, heads), width // heads)
    decays = None
    if isinstance(decay, Tensor):
        decays = of_heads(decay, None)
    elif decay != 1:
        decays = state.new_full((), decay).expand(*values.shape[:3], 1)
    is_regular = decays is None or holds(decays.detach() >= _LEAST_DECAY)
    terms = _Terms(
        decays,
        of_heads(key),
        values,
        of_heads(a),
        of_heads(b, None if is_multiple else rows),
        is_multiple,
        [(is_before, of_heads(query)) for is_before, query in queries],
        positions.moves(),
    )
    last, reads = terms.in_chunks(groups) if is_regular else terms.in_order(groups)
    # In a chunk, what is not finite at a position would reach those before it.
    if is_regular and not all(holds(result.detach().isfinite()) for result in (last, *reads)):
        last, reads = terms.in_order(groups)
    last = positions.last(last.transpose(1, 2).flatten(2), state)
    return last, *(positions.filled(read.transpose(1, 2).flatten(2)) for read in reads)


@dataclass(frozen=True, eq=False)
class _Terms:
    """The terms of a recurrence of `matrix` at each position, [b h n r] or [b h n e], of which None stands for 1 or
    for no term, with the real positions."""

    decay: Tensor | None
    key: Tensor
    value: Tensor
    a: Tensor | None
    b: Tensor | None
    is_multiple: bool
    queries: Sequence[tuple[bool, Tensor]]
    mask: Tensor | None

    def in_chunks(self, state: Tensor) -> tuple[Tensor, list[Tensor]]:
        from archlang.backend.runtime.linear_recurrence import linear_recurrence  # it imports the compiler of torch

        log_decay = None
        if self.decay is not None:
            log_decay = (self.decay if self.decay.dtype == torch.float64 else self.decay.float()).log()
        last, reads = None, []
        for is_before, query in self.queries or [(False, self.key)]:
            # What is read before a position is what is read after the one before it.
            moved = torch.cat((query[:, :, 1:], query[:, :, :1]), 2) if is_before else query
            terms = (self.key, self.value, log_decay, self.a, self.b)
            read, last = linear_recurrence(moved, *terms, state=state, mask=self.mask)
            if is_before:
                read = torch.cat((query[:, :, :1].to(state.dtype) @ state, read[:, :, :-1]), 2)
            reads.append(read)
        assert last is not None
        return last.to(state.dtype), reads

    def in_order(self, state: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Computes one position after the other, for decays that are 0 or below."""
        reads: list[list[Tensor]] = [[] for _ in self.queries]
        count = self.key.shape[2]
        # Slices of one position each would write whole tensors in the backward pass.
        positions = zip(
            *((None,) * count if term is None else term.unbind(2) for term in (self.decay, self.a, self.b)),
            self.key.unbind(2),
            self.value.unbind(2),
            (None,) * count if self.mask is None else self.mask.unbind(1),
            zip(*(query.unbind(2) for _, query in self.queries), strict=True) if self.queries else ((),) * count,
            strict=True,
        )
        for decay, a, b, key, value, is_real, queries in positions:
            before = state
            state = before if decay is None else before * decay[..., None]
            state = state + key[..., None] * value[:, :, None]
            if a is not None:
                column = b * key if self.is_multiple else b
                state = state + column[..., None] * (a[:, :, None] @ before)
            if is_real is not None:
                state = state.where(is_real[:, None, None, None], before)
            for (is_before, _), query, results in zip(self.queries, queries, reads, strict=True):
                results.append((query[:, :, None] @ (before if is_before else state))[:, :, 0])
        return state, [torch.stack(results, 2) for results in reads]
