"""Geometric attention on a GPU, without score matrices: a Triton kernel that walks outward from each query.

A program takes a block of queries and goes through the distances 1, 2, … in chunks. Scores of a chunk are a matrix
product with a window of keys, out of which each query takes those at its distances. Beside a running logarithm of
Π (1 - P) nothing is kept, so memory is linear in the length; the way back computes the weights again. A block stops
where nothing is left of any of its queries: the nearest match has been found. Gradients of keys and values are added up
by atomic additions, in no fixed order.

It runs on a CPU too, in Triton's interpreter (`TRITON_INTERPRET=1`): that is how it is tested without a GPU."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from archlang.backend.runtime.stacking import in_one_batch

# Queries of a program, and distances of a chunk. A window of keys has their sum of columns, a power of two.
_ROWS = 32
# A weight below e to this is nothing: its block has finished.
_FINISHED = -40.0
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


@triton.jit
def _window(pointer, first, m, channel, c: tl.constexpr, size: tl.constexpr):
    """Rows `first` and after it of a matrix [m, c], zeros where there are none: [size, channels]."""
    place = first + tl.arange(0, size)
    there = (place >= 0)[:, None] & (place < m)[:, None] & (channel < c)[None, :]
    return tl.load(pointer + place[:, None] * c + channel[None, :], mask=there, other=0.0)


@triton.jit
def _seen(mask, place, m, masked: tl.constexpr):
    """Whether there is a key at each place that may be seen."""
    there = (place >= 0) & (place < m)
    if masked:
        there = there & (tl.load(mask + place, mask=there, other=0) != 0)
    return there


@triton.jit
def _closed(x, seen):
    """ln(1 - P); 0 where nothing is seen."""
    return tl.where(seen, -(tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))), 0.0)


@triton.jit
def _spread(values, index, inside):
    """What stands by distance, [rows, rows], as columns of a window, [rows, 2 rows]."""
    return tl.where(inside, tl.gather(values, index, 1), 0.0)


@triton.jit
def _at_most(value, bound):
    return tl.minimum(tl.maximum(value, -bound), bound)


@triton.jit
def _forward(
    q, k, v, left, right, mask, out, total, n, m, heads, offset, finished,
    c: tl.constexpr, channels: tl.constexpr, rows: tl.constexpr, causal: tl.constexpr, masked: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * rows + tl.arange(0, rows)
    channel = tl.arange(0, channels)
    inside = query < n
    within = inside[:, None] & (channel < c)[None, :]
    place = query + offset
    first = tl.program_id(0) * rows + offset
    q += head * n * c
    k += head * m * c
    v += head * m * c
    mask += (head // heads) * m
    asked = tl.load(q + query[:, None] * c + channel[None, :], mask=within, other=0.0)
    to_left = tl.load(left + head * n + query, mask=inside, other=0.0)
    to_right = tl.load(right + head * n + query, mask=inside, other=0.0)
    row, step, column = tl.arange(0, rows), tl.arange(0, rows), tl.arange(0, 2 * rows)
    ahead = row[:, None] + step[None, :]
    behind = row[:, None] - step[None, :] + rows - 1
    back_ahead = column[None, :] - row[:, None]
    back_behind = row[:, None] + rows - 1 - column[None, :]
    is_ahead = (back_ahead >= 0) & (back_ahead < rows)
    is_behind = (back_behind >= 0) & (back_behind < rows)
    back_ahead = tl.minimum(tl.maximum(back_ahead, 0), rows - 1)
    back_behind = tl.minimum(tl.maximum(back_behind, 0), rows - 1)
    found = tl.zeros((rows, channels), dtype=tl.float32)
    weight = tl.zeros((rows,), dtype=tl.float32)
    left_over = tl.where(inside, 0.0, -1e30)
    farthest = tl.maximum(first + rows - 1, m - 1 - first)
    begin = 1
    while (begin <= farthest) & (tl.max(left_over) > finished):
        distance = begin + step
        key = _window(k, first - begin - rows + 1, m, channel, c, 2 * rows)
        value = _window(v, first - begin - rows + 1, m, channel, c, 2 * rows)
        scores = tl.dot(asked, tl.trans(key), input_precision=precision)
        x = tl.gather(scores, behind, 1) + to_left[:, None]
        seen = _seen(mask, place[:, None] - distance[None, :], m, masked)
        closed = _closed(x, seen)
        pairs = closed
        if not causal:
            other_key = _window(k, first + begin, m, channel, c, 2 * rows)
            other_value = _window(v, first + begin, m, channel, c, 2 * rows)
            other_scores = tl.dot(asked, tl.trans(other_key), input_precision=precision)
            other_x = tl.gather(other_scores, ahead, 1) + to_right[:, None]
            other_seen = _seen(mask, place[:, None] + distance[None, :], m, masked)
            other_closed = _closed(other_x, other_seen)
            pairs = closed + other_closed
            before = left_over[:, None] + tl.cumsum(pairs, 1) - pairs
            other_a = tl.where(other_seen, tl.exp(other_x + other_closed + before), 0.0)
            weight += tl.sum(other_a, 1)
            spread = _spread(other_a, back_ahead, is_ahead).to(v.dtype.element_ty)
            found += tl.dot(spread, other_value, input_precision=precision)
            a = tl.where(seen, tl.exp(x + closed + before + other_closed), 0.0)
        else:
            before = left_over[:, None] + tl.cumsum(pairs, 1) - pairs
            a = tl.where(seen, tl.exp(x + closed + before), 0.0)
        weight += tl.sum(a, 1)
        spread = _spread(a, back_behind, is_behind).to(v.dtype.element_ty)
        found += tl.dot(spread, value, input_precision=precision)
        left_over += tl.sum(pairs, 1)
        begin += rows
    out += head * n * c
    tl.store(out + query[:, None] * c + channel[None, :], found, mask=within)
    tl.store(total + head * n + query, weight, mask=inside)


@triton.jit
def _backward(
    q, k, v, left, right, mask, out, total, by_out, by_total, bound, dq, dk, dv, dleft, dright, n, m, heads, offset,
    finished,
    c: tl.constexpr, channels: tl.constexpr, rows: tl.constexpr, causal: tl.constexpr, masked: tl.constexpr,
    precision: tl.constexpr,
):  # fmt: skip
    head = tl.program_id(1).to(tl.int64)
    query = tl.program_id(0) * rows + tl.arange(0, rows)
    channel = tl.arange(0, channels)
    inside = query < n
    within = inside[:, None] & (channel < c)[None, :]
    place = query + offset
    first = tl.program_id(0) * rows + offset
    cells = query[:, None] * c + channel[None, :]
    q += head * n * c
    k += head * m * c
    v += head * m * c
    dk += head * m * c
    dv += head * m * c
    mask += (head // heads) * m
    asked = tl.load(q + cells, mask=within, other=0.0)
    to_left = tl.load(left + head * n + query, mask=inside, other=0.0)
    to_right = tl.load(right + head * n + query, mask=inside, other=0.0)
    wanted = tl.load(by_out + head * n * c + cells, mask=within, other=0.0)
    wanted_total = tl.load(by_total + head * n + query, mask=inside, other=0.0)
    most = tl.load(bound + head * n + query, mask=inside, other=0.0)[:, None]
    result = tl.load(out + head * n * c + cells, mask=within, other=0.0)
    # Σ A dA over all keys; what is farther than a key is that without what is nearer. Where Π (1 - P) is small, only
    # rounding is left of it, so it is held to what may be left: Σ A |dA| <= Π (1 - P) max |dA|.
    farther = tl.sum(wanted.to(tl.float32) * result, 1)
    farther += wanted_total * tl.load(total + head * n + query, mask=inside, other=0.0)
    row, step, column = tl.arange(0, rows), tl.arange(0, rows), tl.arange(0, 2 * rows)
    ahead = row[:, None] + step[None, :]
    behind = row[:, None] - step[None, :] + rows - 1
    back_ahead = column[None, :] - row[:, None]
    back_behind = row[:, None] + rows - 1 - column[None, :]
    is_ahead = (back_ahead >= 0) & (back_ahead < rows)
    is_behind = (back_behind >= 0) & (back_behind < rows)
    back_ahead = tl.minimum(tl.maximum(back_ahead, 0), rows - 1)
    back_behind = tl.minimum(tl.maximum(back_behind, 0), rows - 1)
    found = tl.zeros((rows, channels), dtype=tl.float32)
    found_left = tl.zeros((rows,), dtype=tl.float32)
    found_right = tl.zeros((rows,), dtype=tl.float32)
    left_over = tl.where(inside, 0.0, -1e30)
    farthest = tl.maximum(first + rows - 1, m - 1 - first)
    begin = 1
    while (begin <= farthest) & (tl.max(left_over) > finished):
        distance = begin + step
        start = first - begin - rows + 1
        key = _window(k, start, m, channel, c, 2 * rows)
        value = _window(v, start, m, channel, c, 2 * rows)
        x = tl.gather(tl.dot(asked, tl.trans(key), input_precision=precision), behind, 1) + to_left[:, None]
        seen = _seen(mask, place[:, None] - distance[None, :], m, masked)
        closed = _closed(x, seen)
        by_a = tl.gather(tl.dot(wanted, tl.trans(value), input_precision=precision), behind, 1) + wanted_total[:, None]
        pairs = closed
        if not causal:
            other_start = first + begin
            other_key = _window(k, other_start, m, channel, c, 2 * rows)
            other_value = _window(v, other_start, m, channel, c, 2 * rows)
            other_scores = tl.dot(asked, tl.trans(other_key), input_precision=precision)
            other_x = tl.gather(other_scores, ahead, 1) + to_right[:, None]
            other_seen = _seen(mask, place[:, None] + distance[None, :], m, masked)
            other_closed = _closed(other_x, other_seen)
            pairs = closed + other_closed
            before = left_over[:, None] + tl.cumsum(pairs, 1) - pairs
            other_a = tl.where(other_seen, tl.exp(other_x + other_closed + before), 0.0)
            a = tl.where(seen, tl.exp(x + closed + before + other_closed), 0.0)
            other_by = tl.dot(wanted, tl.trans(other_value), input_precision=precision)
            other_own = other_a * (tl.gather(other_by, ahead, 1) + wanted_total[:, None])
            own = a * by_a
            both = own + other_own
            behind_left = farther[:, None] - tl.cumsum(both, 1)
            behind_right = _at_most(behind_left + own, most * tl.exp(before + other_closed))
            behind_left = _at_most(behind_left, most * tl.exp(before + pairs))
            open_ = tl.where(other_seen, tl.exp(other_x + other_closed), 0.0)
            other_g = other_own * (1.0 - open_) - open_ * behind_right
            found_right += tl.sum(other_g, 1)
            spread = _spread(other_g, back_ahead, is_ahead).to(k.dtype.element_ty)
            found += tl.dot(spread, other_key, input_precision=precision)
            there = other_start + column
            cell = there[:, None] * c + channel[None, :]
            on = (there >= 0)[:, None] & (there < m)[:, None] & (channel < c)[None, :]
            tl.atomic_add(dk + cell, tl.dot(tl.trans(spread), asked, input_precision=precision), mask=on)
            spread = _spread(other_a, back_ahead, is_ahead).to(v.dtype.element_ty)
            tl.atomic_add(dv + cell, tl.dot(tl.trans(spread), wanted, input_precision=precision), mask=on)
            farther -= tl.sum(both, 1)
        else:
            before = left_over[:, None] + tl.cumsum(pairs, 1) - pairs
            a = tl.where(seen, tl.exp(x + closed + before), 0.0)
            own = a * by_a
            behind_left = _at_most(farther[:, None] - tl.cumsum(own, 1), most * tl.exp(before + pairs))
            farther -= tl.sum(own, 1)
        open_ = tl.where(seen, tl.exp(x + closed), 0.0)
        g = own * (1.0 - open_) - open_ * behind_left
        found_left += tl.sum(g, 1)
        spread = _spread(g, back_behind, is_behind).to(k.dtype.element_ty)
        found += tl.dot(spread, key, input_precision=precision)
        there = start + column
        cell = there[:, None] * c + channel[None, :]
        on = (there >= 0)[:, None] & (there < m)[:, None] & (channel < c)[None, :]
        tl.atomic_add(dk + cell, tl.dot(tl.trans(spread), asked, input_precision=precision), mask=on)
        spread = _spread(a, back_behind, is_behind).to(v.dtype.element_ty)
        tl.atomic_add(dv + cell, tl.dot(tl.trans(spread), wanted, input_precision=precision), mask=on)
        left_over += tl.sum(pairs, 1)
        begin += rows
    tl.store(dq + head * n * c + cells, found, mask=within)
    tl.store(dleft + head * n + query, found_left, mask=inside)
    tl.store(dright + head * n + query, found_right, mask=inside)


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(  # Any: what torch keeps for the way back
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, mask: Tensor | None, causal: bool,
        offset: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        q, k, v, left, right = (one.contiguous() for one in (q, k, v, left.float(), right.float()))
        b, heads, n, c = q.shape
        out = torch.empty(b, heads, n, c, dtype=torch.float32, device=q.device)
        total = torch.empty(b, heads, n, dtype=torch.float32, device=q.device)
        seen = q if mask is None else mask.to(torch.int8).contiguous()
        if n:
            _forward[_grid(q)](
                q, k, v, left, right, seen, out, total, n, k.shape[2], heads, offset, _FINISHED,
                **_constants(q, causal, mask),
            )  # fmt: skip
        ctx.save_for_backward(q, k, v, left, right, seen, out, total)
        ctx.asked = mask, causal, offset
        return out, total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_out: Tensor, by_total: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        q, k, v, left, right, seen, out, total = ctx.saved_tensors
        mask, causal, offset = ctx.asked
        dq, dk, dv = (torch.zeros(one.shape, dtype=torch.float32, device=q.device) for one in (q, k, v))
        dleft, dright = torch.zeros_like(left), torch.zeros_like(right)
        by_out, by_total = by_out.to(v.dtype).contiguous(), by_total.float().contiguous()
        bound = by_out.float().norm(dim=-1) * v.float().norm(dim=-1).amax(-1)[..., None] + by_total.abs()
        if q.shape[2]:
            _backward[_grid(q)](
                q, k, v, left, right, seen, out, total, by_out, by_total, bound,
                dq, dk, dv, dleft, dright, q.shape[2], k.shape[2], q.shape[1], offset, _FINISHED,
                **_constants(q, causal, mask),
            )  # fmt: skip
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), dleft, dright, None, None, None


def _grid(q: Tensor) -> tuple[int, int]:
    return triton.cdiv(q.shape[2], _ROWS), q.shape[0] * q.shape[1]


def _constants(q: Tensor, causal: bool, mask: Tensor | None) -> dict[str, Any]:  # Any: compile-time constants
    c = q.shape[-1]
    # TF32 would round float32 to ten bits.
    precision = "ieee" if q.dtype == torch.float32 else "tf32"
    return dict(
        c=c, channels=max(16, triton.next_power_of_2(c)), rows=_ROWS, causal=causal, masked=mask is not None,
        precision=precision,
    )  # fmt: skip


def geometric_attention(
    q: Float[Tensor, "b h n c"],
    k: Float[Tensor, "b h m c"],
    v: Float[Tensor, "b h m c"],
    left: Float[Tensor, "b h n"],
    right: Float[Tensor, "b h n"],
    mask: Bool[Tensor, "b m"] | None = None,
    *,
    causal: bool = False,
    offset: int = 0,
) -> tuple[Float[Tensor, "b h n c"], Float[Tensor, "b h n"]]:
    """Σ_j A_ij v_j and Σ_j A_ij of queries at the places `offset` and after it, each query's own key hidden.

        P_ij = σ(q_i · k_j + (right_i if j > i, left_i if j < i)),    A_ij = P_ij Π_k (1 - P_ik), k nearer to i than j

    `mask` is True at keys that may be seen. With `causal` only those to the left are: stick-breaking attention. The
    results are float32; the numbers inside are too, whatever q, k and v are. It has no second derivative.

    NDR (Csordás, Irie, Schmidhuber, ICLR 2022), Eqs. 6-8; the one-sided form is that of Shen et al., "Scaling
    stick-breaking attention", 2024."""

    def of_batch(
        q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = _Kernel.apply(q, k, v, left, right, mask, causal, offset)
        return found

    found: tuple[Tensor, Tensor] = in_one_batch(of_batch, q, k, v, left, right, *(() if mask is None else (mask,)))
    return found
