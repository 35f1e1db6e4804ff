"""Geometric attention on a GPU without score matrices: a Triton kernel that moves outward from each query.

A program computes a block of queries over the distances 1, 2, … in chunks. The scores of a chunk are a matrix product
with a window of keys, from which each query selects the keys at its distances. The only state is a running logarithm of
Π (1 - P), so memory is linear in the length; backward recomputes the weights. A block stops when the remaining weight
of all of its queries is negligible. Gradients of keys and values are summed by atomic additions, in no fixed order.

Without a GPU, tests run it on the CPU in Triton's interpreter (`TRITON_INTERPRET=1`)."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.kernels.derivatives import plain_gradients
from archlang.backend.kernels.nearest_match import plain_weights
from archlang.backend.runtime.stacking import in_one_batch

# Queries of a program and distances of a chunk. A window of keys has twice as many rows, a power of two. On an H200, 32
# rows take 1.5 times as long in 32 bits.
_ROWS = 16
# A block stops when the logarithm of the remaining weight is below this.
_FINISHED = -40.0
DTYPES = (torch.float32, torch.bfloat16, torch.float16)

# Else Triton compiles a kernel anew for sizes that are 1, or a multiple of 16.
_jit_for_all_sizes = partial(triton.jit, do_not_specialize=("n", "m", "heads", "offset"))


@triton.jit
def _window(pointer, first, m, channel, c: tl.constexpr, size: tl.constexpr):
    """Returns `size` rows of a matrix [m, c] from row `first`, [size, channels]; rows outside the matrix are zero."""
    place = first + tl.arange(0, size)
    there = (place >= 0)[:, None] & (place < m)[:, None] & (channel < c)[None, :]
    return tl.load(pointer + place[:, None] * c + channel[None, :], mask=there, other=0.0)


@triton.jit
def _seen(mask, place, m, masked: tl.constexpr):
    """Returns whether there is a visible key at each position."""
    there = (place >= 0) & (place < m)
    if masked:
        there = there & (tl.load(mask + place, mask=there, other=0) != 0)
    return there


@triton.jit
def _closed(x, seen):
    """Returns ln(1 - P), or 0 for a hidden key."""
    return tl.where(seen, -(tl.maximum(x, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(x)))), 0.0)


@triton.jit
def _spread(values, index, inside):
    """Scatters values by distance, [rows, rows], to the columns of a window, [rows, 2 rows]."""
    return tl.where(inside, tl.gather(values, index, 1), 0.0)


@triton.jit
def _at_most(value, bound):
    return tl.minimum(tl.maximum(value, -bound), bound)


@_jit_for_all_sizes
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
    queries = tl.load(q + query[:, None] * c + channel[None, :], mask=within, other=0.0)
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
    result = tl.zeros((rows, channels), dtype=tl.float32)
    weight = tl.zeros((rows,), dtype=tl.float32)
    log_rest = tl.where(inside, 0.0, -1e30)
    farthest = tl.maximum(first + rows - 1, m - 1 - first)
    begin = 1
    while (begin <= farthest) & (tl.max(log_rest) > finished):
        distance = begin + step
        key = _window(k, first - begin - rows + 1, m, channel, c, 2 * rows)
        value = _window(v, first - begin - rows + 1, m, channel, c, 2 * rows)
        scores = tl.dot(queries, tl.trans(key), input_precision=precision)
        x = tl.gather(scores, behind, 1) + to_left[:, None]
        seen = _seen(mask, place[:, None] - distance[None, :], m, masked)
        closed = _closed(x, seen)
        pairs = closed
        if not causal:
            other_key = _window(k, first + begin, m, channel, c, 2 * rows)
            other_value = _window(v, first + begin, m, channel, c, 2 * rows)
            other_scores = tl.dot(queries, tl.trans(other_key), input_precision=precision)
            other_x = tl.gather(other_scores, ahead, 1) + to_right[:, None]
            other_seen = _seen(mask, place[:, None] + distance[None, :], m, masked)
            other_closed = _closed(other_x, other_seen)
            pairs = closed + other_closed
            before = log_rest[:, None] + tl.cumsum(pairs, 1) - pairs
            other_a = tl.where(other_seen, tl.exp(other_x + other_closed + before), 0.0)
            weight += tl.sum(other_a, 1)
            spread = _spread(other_a, back_ahead, is_ahead).to(v.dtype.element_ty)
            result += tl.dot(spread, other_value, input_precision=precision)
            a = tl.where(seen, tl.exp(x + closed + before + other_closed), 0.0)
        else:
            before = log_rest[:, None] + tl.cumsum(pairs, 1) - pairs
            a = tl.where(seen, tl.exp(x + closed + before), 0.0)
        weight += tl.sum(a, 1)
        spread = _spread(a, back_behind, is_behind).to(v.dtype.element_ty)
        result += tl.dot(spread, value, input_precision=precision)
        log_rest += tl.sum(pairs, 1)
        begin += rows
    out += head * n * c
    tl.store(out + query[:, None] * c + channel[None, :], result, mask=within)
    tl.store(total + head * n + query, weight, mask=inside)


@_jit_for_all_sizes
def _backward(
    q, k, v, left, right, mask, out, total, by_out, by_total, longest, dq, dk, dv, dleft, dright, n, m, heads, offset,
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
    queries = tl.load(q + cells, mask=within, other=0.0)
    to_left = tl.load(left + head * n + query, mask=inside, other=0.0)
    to_right = tl.load(right + head * n + query, mask=inside, other=0.0)
    out_gradient = tl.load(by_out + head * n * c + cells, mask=within, other=0.0)
    total_gradient = tl.load(by_total + head * n + query, mask=inside, other=0.0)
    wide_gradient = out_gradient.to(tl.float32)
    most = tl.sqrt(tl.sum(wide_gradient * wide_gradient, 1)) * tl.load(longest + head) + tl.abs(total_gradient)
    most = most[:, None]
    result = tl.load(out + head * n * c + cells, mask=within, other=0.0)
    # Σ A dA over all keys; the sum over farther keys is this sum minus the sum over nearer keys. If Π (1 - P) is small,
    # the difference is dominated by rounding, so it is clamped to its bound: Σ A |dA| <= Π (1 - P) max |dA|.
    farther = tl.sum(wide_gradient * result, 1)
    farther += total_gradient * tl.load(total + head * n + query, mask=inside, other=0.0)
    row, step, column = tl.arange(0, rows), tl.arange(0, rows), tl.arange(0, 2 * rows)
    ahead = row[:, None] + step[None, :]
    behind = row[:, None] - step[None, :] + rows - 1
    back_ahead = column[None, :] - row[:, None]
    back_behind = row[:, None] + rows - 1 - column[None, :]
    is_ahead = (back_ahead >= 0) & (back_ahead < rows)
    is_behind = (back_behind >= 0) & (back_behind < rows)
    back_ahead = tl.minimum(tl.maximum(back_ahead, 0), rows - 1)
    back_behind = tl.minimum(tl.maximum(back_behind, 0), rows - 1)
    query_gradient = tl.zeros((rows, channels), dtype=tl.float32)
    left_gradient = tl.zeros((rows,), dtype=tl.float32)
    right_gradient = tl.zeros((rows,), dtype=tl.float32)
    log_rest = tl.where(inside, 0.0, -1e30)
    farthest = tl.maximum(first + rows - 1, m - 1 - first)
    begin = 1
    while (begin <= farthest) & (tl.max(log_rest) > finished):
        distance = begin + step
        start = first - begin - rows + 1
        key = _window(k, start, m, channel, c, 2 * rows)
        value = _window(v, start, m, channel, c, 2 * rows)
        x = tl.gather(tl.dot(queries, tl.trans(key), input_precision=precision), behind, 1) + to_left[:, None]
        seen = _seen(mask, place[:, None] - distance[None, :], m, masked)
        closed = _closed(x, seen)
        by_a = (
            tl.gather(tl.dot(out_gradient, tl.trans(value), input_precision=precision), behind, 1)
            + total_gradient[:, None]
        )
        pairs = closed
        if not causal:
            other_start = first + begin
            other_key = _window(k, other_start, m, channel, c, 2 * rows)
            other_value = _window(v, other_start, m, channel, c, 2 * rows)
            other_scores = tl.dot(queries, tl.trans(other_key), input_precision=precision)
            other_x = tl.gather(other_scores, ahead, 1) + to_right[:, None]
            other_seen = _seen(mask, place[:, None] + distance[None, :], m, masked)
            other_closed = _closed(other_x, other_seen)
            pairs = closed + other_closed
            before = log_rest[:, None] + tl.cumsum(pairs, 1) - pairs
            other_a = tl.where(other_seen, tl.exp(other_x + other_closed + before), 0.0)
            a = tl.where(seen, tl.exp(x + closed + before + other_closed), 0.0)
            other_by = tl.dot(out_gradient, tl.trans(other_value), input_precision=precision)
            other_own = other_a * (tl.gather(other_by, ahead, 1) + total_gradient[:, None])
            own = a * by_a
            both = own + other_own
            behind_left = farther[:, None] - tl.cumsum(both, 1)
            behind_right = _at_most(behind_left + own, most * tl.exp(before + other_closed))
            behind_left = _at_most(behind_left, most * tl.exp(before + pairs))
            open_ = tl.where(other_seen, tl.exp(other_x + other_closed), 0.0)
            other_g = other_own * (1.0 - open_) - open_ * behind_right
            right_gradient += tl.sum(other_g, 1)
            spread = _spread(other_g, back_ahead, is_ahead).to(k.dtype.element_ty)
            query_gradient += tl.dot(spread, other_key, input_precision=precision)
            there = other_start + column
            cell = there[:, None] * c + channel[None, :]
            on = (there >= 0)[:, None] & (there < m)[:, None] & (channel < c)[None, :]
            tl.atomic_add(
                dk + cell, tl.dot(tl.trans(spread), queries, input_precision=precision), mask=on, sem="relaxed"
            )
            spread = _spread(other_a, back_ahead, is_ahead).to(v.dtype.element_ty)
            tl.atomic_add(
                dv + cell, tl.dot(tl.trans(spread), out_gradient, input_precision=precision), mask=on, sem="relaxed"
            )
            farther -= tl.sum(both, 1)
        else:
            before = log_rest[:, None] + tl.cumsum(pairs, 1) - pairs
            a = tl.where(seen, tl.exp(x + closed + before), 0.0)
            own = a * by_a
            behind_left = _at_most(farther[:, None] - tl.cumsum(own, 1), most * tl.exp(before + pairs))
            farther -= tl.sum(own, 1)
        open_ = tl.where(seen, tl.exp(x + closed), 0.0)
        g = own * (1.0 - open_) - open_ * behind_left
        left_gradient += tl.sum(g, 1)
        spread = _spread(g, back_behind, is_behind).to(k.dtype.element_ty)
        query_gradient += tl.dot(spread, key, input_precision=precision)
        there = start + column
        cell = there[:, None] * c + channel[None, :]
        on = (there >= 0)[:, None] & (there < m)[:, None] & (channel < c)[None, :]
        tl.atomic_add(dk + cell, tl.dot(tl.trans(spread), queries, input_precision=precision), mask=on, sem="relaxed")
        spread = _spread(a, back_behind, is_behind).to(v.dtype.element_ty)
        tl.atomic_add(
            dv + cell, tl.dot(tl.trans(spread), out_gradient, input_precision=precision), mask=on, sem="relaxed"
        )
        log_rest += tl.sum(pairs, 1)
        begin += rows
    tl.store(dq + head * n * c + cells, query_gradient, mask=within)
    tl.store(dleft + head * n + query, left_gradient, mask=inside)
    tl.store(dright + head * n + query, right_gradient, mask=inside)


class _Kernel(torch.autograd.Function):
    @staticmethod
    def forward(  # Any: torch's context
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, mask: Tensor | None, causal: bool,
        offset: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        b, heads, n, c = q.shape
        out = torch.empty(b, heads, n, c, dtype=torch.float32, device=q.device)
        total = torch.empty(b, heads, n, dtype=torch.float32, device=q.device)
        if n:
            _forward[_grid(q)](
                q, k, v, left, right, _mask_or(q, mask), out, total, n, k.shape[2], heads, offset, _FINISHED,
                **_constants(q, causal, mask),
            )  # fmt: skip
        ctx.save_for_backward(q, k, v, left, right, mask, out, total)
        ctx.options = causal, offset
        return out, total

    @staticmethod
    def backward(ctx: Any, by_out: Tensor, by_total: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        q, k, v, left, right, mask, out, total = ctx.saved_tensors
        causal, offset = ctx.options
        if torch.is_grad_enabled():
            plain = partial(_plainly, mask=mask, causal=causal, offset=offset)
            required = ctx.needs_input_grad[:5]
            gradients = plain_gradients(plain, (q, k, v, left, right), required, (by_out, by_total))
            return *gradients, None, None, None
        dq, dleft, dright = torch.empty_like(q), torch.empty_like(left), torch.empty_like(right)
        of_keys = torch.zeros(2, *k.shape, dtype=torch.float32, device=q.device)
        by_out, by_total = by_out.to(v.dtype).contiguous(), by_total.float().contiguous()
        longest = torch.linalg.vector_norm(v, dim=-1, dtype=torch.float32).amax(-1)
        if q.shape[2]:
            _backward[_grid(q)](
                q, k, v, left, right, _mask_or(q, mask), out, total, by_out, by_total, longest,
                dq, *of_keys, dleft, dright, q.shape[2], k.shape[2], q.shape[1], offset, _FINISHED,
                **_constants(q, causal, mask),
            )  # fmt: skip
        return dq, *of_keys.to(k.dtype), dleft, dright, None, None, None


def _plainly(
    q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, *, mask: Tensor | None, causal: bool, offset: int
) -> tuple[Tensor, Tensor]:
    """The results in plain torch, which stores the matrix of scores."""
    sides = torch.cat((left, right), 1).transpose(1, 2)
    weights = plain_weights(q.float(), k.float(), sides, mask, offset, causal)
    return weights @ v.float(), weights.sum(-1)


def _mask_or(unused: Tensor, mask: Tensor | None) -> Tensor:
    """Returns the mask as the kernels read it, or a tensor that they do not read."""
    return unused if mask is None else mask.to(torch.int8).contiguous()


def _grid(q: Tensor) -> tuple[int, int]:
    return triton.cdiv(q.shape[2], _ROWS), q.shape[0] * q.shape[1]


def _constants(q: Tensor, causal: bool, mask: Tensor | None) -> dict[str, Any]:  # Any: compile-time constants
    c = q.shape[-1]
    return dict(
        c=c, channels=max(16, triton.next_power_of_2(c)), rows=_ROWS, causal=causal, masked=mask is not None,
        precision=_precision(q),
    )  # fmt: skip


def _precision(q: Tensor) -> str:
    """Returns how matrix products are computed. TF32 rounds float32 to a mantissa of ten bits; three products of the
    high and the low bits have the precision of float32, and take a quarter to a half of its time on an H200."""
    if q.dtype != torch.float32:
        return "tf32"
    has_tf32 = q.is_cuda and torch.version.hip is None and torch.cuda.get_device_capability(q.device) >= (8, 0)
    return "tf32x3" if has_tf32 else "ieee"


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
    """Returns Σ_j A_ij v_j and Σ_j A_ij of queries at the positions from `offset`. Each query ignores its own key.

        P_ij = σ(q_i · k_j + (right_i if j > i, left_i if j < i)),    A_ij = P_ij Π_k (1 - P_ik), k nearer to i than j

    `mask` is True for visible keys. With `causal` only keys to the left are visible: stick-breaking attention. Results
    and intermediate values are float32 for any dtype of q, k and v. Second derivatives are those of the plain form,
    whose memory is quadratic in the length.

    NDR (Csordás, Irie, Schmidhuber, ICLR 2022), Eqs. 6-8; the one-sided form is that of Shen et al., "Scaling
    stick-breaking attention", 2024."""

    def of_batch(
        q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        inputs = (tensor.contiguous() for tensor in (q, k, v, left.float(), right.float()))
        results: tuple[Tensor, Tensor] = _Kernel.apply(*inputs, mask, causal, offset)
        return results

    masks = () if mask is None else (mask,)
    results: tuple[Tensor, Tensor] = in_one_batch(of_batch, q, k, v, left, right, *masks)
    return results
