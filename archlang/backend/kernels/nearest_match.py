"""The weights of geometric attention from queries and keys, with few passes over the scores: of few keys on any device,
of many keys on a CPU.

Both forms equal `plain_weights`, which computes their second derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from math import e, log2
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.kernels.derivatives import plain_gradients
from archlang.backend.kernels.plain_geometric import plain_weights
from archlang.backend.runtime.stacking import in_one_batch, needs_plain_form

# The number of keys up to which the form for few keys is faster; its work grows with the third power of the number.
SHORT = 64


def match_weights(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h m c"],
    sides: Float[Tensor, "b n _s"],
    mask_m: Bool[Tensor, "b m"] | None = None,
    offset: int = 0,
    causal: bool = False,
) -> Float[Tensor, "b h n m"]:
    """Returns `plain_weights` of the same arguments by the fastest form."""
    # torch.compile traces the plain form, and transforms differentiate it.
    if torch.compiler.is_compiling() or needs_plain_form():
        return plain_weights(query, key, sides, mask_m, offset, causal)
    n, m, device = query.shape[2], key.shape[2], query.device.type
    if m <= SHORT and device in ("cpu", "cuda"):
        return by_form(_OfShort, query, key, sides, mask_m, offset, causal)
    if n == m and offset == 0 and device == "cpu":
        return by_form(_OfLong, query, key, sides, mask_m, offset, causal)
    return plain_weights(query, key, sides, mask_m, offset, causal)


def by_form(
    form: Any,  # torch types no autograd function
    query: Tensor,
    key: Tensor,
    sides: Tensor,
    mask_m: Bool[Tensor, "b m"] | None = None,
    offset: int = 0,
    causal: bool = False,
) -> Tensor:
    # The sums need at least single precision.
    wide = torch.promote_types(query.dtype, torch.float32)

    def of_batch(query: Tensor, key: Tensor, sides: Tensor, mask: Tensor | None = None) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):
            weights: Tensor = form.apply(query.to(wide), key.to(wide), sides.to(wide), mask, offset, causal)
        return weights

    weights: Tensor = in_one_batch(of_batch, query, key, sides, *(() if mask_m is None else (mask_m,)))
    return weights


def _hidden(unseen: Bool[Tensor, "n m"], mask_m: Bool[Tensor, "b m"] | None) -> Bool[Tensor, "_b 1 n m"]:
    return unseen[None, None] if mask_m is None else unseen | ~mask_m[:, None, None, :]


def _left_and_right(sides: Float[Tensor, "b n _s"]) -> tuple[Float[Tensor, "k n 1"], Float[Tensor, "k n 1"]]:
    left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
    return left.flatten(0, 1), right.flatten(0, 1)


def _plain_gradients(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: torch's context
    """Returns the gradients of both forms' arguments, to differentiate again."""
    *_, query, key, sides, mask_m = ctx.saved_tensors
    plain = partial(plain_weights, mask_m=mask_m, offset=ctx.offset, causal=ctx.causal)
    required = ctx.needs_input_grad[:3]
    return *plain_gradients(plain, (query, key, sides), required, (gradient,)), None, None, None


# Few keys


class _OfShort(torch.autograd.Function):
    """Computes the sums over nearer keys as products with matrices of zeros and ones, one for each position of a
    query."""

    @staticmethod
    def forward(
        ctx: Any,  # torch's context
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        sides: Float[Tensor, "b n _s"],
        mask_m: Bool[Tensor, "b m"] | None,
        offset: int,
        causal: bool,
    ) -> Float[Tensor, "b h n m"]:
        b, h, n, _ = query.shape
        m = key.shape[2]
        places = _places(n, m, offset, causal, query.dtype, query.device)
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        left, right = _left_and_right(sides)
        logits = torch.where(places.ahead, right, left).baddbmm_(q, k.transpose(1, 2))
        logits.view(b, h, n, m).masked_fill_(_hidden(places.unseen, mask_m), -torch.inf)
        closed = F.softplus(logits, threshold=40.0)  # -ln(1 - P)
        log = logits.sub_(closed)  # ln P
        open_ = log.exp()
        weights = log.sub_(_by_place(closed, places.nearer)).exp_()
        ctx.save_for_backward(weights, open_, query, key, sides, mask_m)
        ctx.offset, ctx.causal, ctx.places = offset, causal, places
        return weights.view(b, h, n, m)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        if torch.is_grad_enabled():
            return _plain_gradients(ctx, gradient)
        weights, open_, query, key, *_ = ctx.saved_tensors
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        places: _Places = ctx.places
        b, h, n, m = gradient.shape
        own = weights * gradient.reshape(weights.shape)
        # The logit of a key moves the weights of the key and of all farther keys.
        closing = _by_place(own, places.nearer.transpose(1, 2)).add_(own).mul_(open_)
        by_logit = own.sub_(closing)
        by_side = _by_place(by_logit, places.sides).view(b, h, n, 2)
        return (
            torch.bmm(by_logit, k).view(b, h, n, k.shape[-1]),
            torch.bmm(by_logit.transpose(1, 2), q).view(b, h, m, q.shape[-1]),
            by_side.permute(0, 2, 3, 1).reshape(b, n, 2 * h),
            None,
            None,
            None,
        )


def _by_place(values: Float[Tensor, "k n m"], maps: Float[Tensor, "n m _l"]) -> Float[Tensor, "k n _l"]:
    """Returns values[:, i] @ maps[i] for each i."""
    return torch.bmm(values.transpose(0, 1), maps).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class _Places:
    """Values that depend on the positions of queries and keys only."""

    ahead: Bool[Tensor, "n m"]
    """the key is to the right of the query"""
    unseen: Bool[Tensor, "n m"]
    """the key is at the position of the query, or to the right of it if the block is causal"""
    nearer: Float[Tensor, "n m m"]
    """a matrix for each query: 1 at (k, j) if the key k is nearer than j, or at equal distance and to the right"""
    sides: Float[Tensor, "n m 2"]
    """a matrix for each query: 1 at (k, 1) if the key k is to the right, else 1 at (k, 0)"""


@lru_cache(maxsize=64)
def _places(n: int, m: int, offset: int, causal: bool, dtype: torch.dtype, device: torch.device) -> _Places:
    place = torch.arange(offset, offset + n, device=device)[:, None]
    key = torch.arange(m, device=device)
    ahead = key > place
    rank = 2 * (key - place).abs() + (key < place)
    return _Places(
        ahead,
        key >= place if causal else key == place,
        (rank[:, :, None] < rank[:, None, :]).to(dtype),
        torch.stack([~ahead, ahead], -1).to(dtype),
    )


# Many keys


class _OfLong(torch.autograd.Function):
    """Computes the sum over nearer keys as the difference of a cumulative sum at a key and at its mirror image, as in
    NDR's program, but in double precision. The keys are at the positions of the queries, and denormal numbers become 0.
    It works on as many rows at a time as fit the processor's cache: the only
    complete matrices are the weights and P."""

    @staticmethod
    def forward(
        ctx: Any,  # torch's context
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h n c"],
        sides: Float[Tensor, "b n _s"],
        mask_n: Bool[Tensor, "b n"] | None,
        offset: int,
        causal: bool,
    ) -> Float[Tensor, "b h n n"]:
        b, h, n, _ = query.shape
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        left, right = _left_and_right(sides)
        samples = torch.arange(b * h, device=q.device) // h
        place = torch.arange(n, device=q.device)
        hidden = _hidden(place >= place[:, None] if causal else place == place[:, None], mask_n)
        weights, open_ = q.new_empty(b * h, n, n), q.new_empty(b * h, n, n)
        lowest = -60.0 if q.dtype == torch.float32 else -600.0
        work = _Workspace(weights)
        for part in work.parts():
            matrices, rows = part
            logits = torch.where(work.ahead[rows], right[part], left[part])
            logits.baddbmm_(q[part], k[matrices].transpose(1, 2))
            unseen = hidden[:, 0, rows] if len(hidden) == 1 else hidden[samples[matrices], 0, rows]
            logits.masked_fill_(unseen, -torch.inf)
            bounded = logits.clamp(min=lowest)
            closed = F.softplus(bounded, threshold=40.0)  # -ln(1 - P)
            torch.sigmoid(bounded, out=open_[part])
            log = logits.sub_(closed).sub_(work.nearer(closed, rows))
            torch.threshold_(log, lowest, -torch.inf)
            torch.exp2(log.mul_(log2(e)), out=weights[part])  # faster than exp in torch
        ctx.save_for_backward(weights, open_, query, key, sides, mask_n)
        ctx.offset, ctx.causal = offset, causal
        return weights.view(b, h, n, n)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        if torch.is_grad_enabled():
            return _plain_gradients(ctx, gradient)
        weights, open_, query, key, *_ = ctx.saved_tensors
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        b, h, n, _ = gradient.shape
        by_query, by_key = torch.empty_like(q), torch.zeros_like(k)
        by_side = q.new_empty(b * h, n, 2)
        by = gradient.reshape(weights.shape)
        work = _Workspace(weights)
        for part in work.parts():
            matrices, rows = part
            own = weights[part] * by[part]
            total = own.sum(-1, keepdim=True)
            # The logit of a key moves the weights of the key and of all farther keys.
            nearer = work.nearer(own, rows)
            by_logit = own.sub_(torch.sub(total, nearer, out=nearer).mul_(open_[part]))
            by_query[part] = by_logit @ k[matrices]
            by_key[matrices].baddbmm_(by_logit.transpose(1, 2), q[part])
            to_right = torch.sum(by_logit * work.ahead[rows], -1)
            by_side[part] = torch.stack([by_logit.sum(-1) - to_right, to_right], -1)
        sides = by_side.view(b, h, n, 2).permute(0, 2, 3, 1).reshape(b, n, 2 * h)
        return by_query.view(b, h, n, k.shape[-1]), by_key.view(b, h, n, q.shape[-1]), sides, None, None, None


def _part(n: int) -> int:
    """Returns how many numbers to process at a time, as measured: more numbers of short rows exceed the processor's
    cache, and fewer numbers of long rows do not occupy all cores."""
    return 1 << (17 if n <= 512 else 18)


class _Workspace:
    """Buffers for the cumulative sums of some rows of a score matrix, or of some complete matrices."""

    def __init__(self, like: Float[Tensor, "k n n"]) -> None:
        self._count, n, _ = like.shape
        self._n = n
        numbers = _part(n)
        self._rows = max(1, min(n, numbers // max(n, 1)))
        self._matrices = max(1, min(self._count, numbers // max(self._rows * n, 1)))
        # The cumulative sum is 0 before the first key, and the total after the last key.
        self._sums = like.new_empty(self._matrices, self._rows, n + 1, dtype=torch.float64)
        self._sums[..., 0] = 0
        self._mirror = like.new_empty(self._matrices, self._rows, 3 * n, dtype=torch.float64)
        self._mirror[..., 2 * n :] = 0
        place = torch.arange(n, device=like.device)
        self.ahead = place > place[:, None]
        """the key is to the right of the query"""
        self._sign = 2 * self.ahead.to(like.dtype) - 1

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Yields slices of matrices and of their rows."""
        for matrix in range(0, self._count, self._matrices):
            for row in range(0, self._n, self._rows):
                yield (
                    slice(matrix, min(matrix + self._matrices, self._count)),
                    slice(row, min(row + self._rows, self._n)),
                )

    def nearer(self, values: Float[Tensor, "k r n"], rows: slice) -> Float[Tensor, "k r n"]:
        """Returns for each key the sum of the values of the keys that are nearer to its query."""
        count, height, n = values.shape
        sums, mirror = self._sums[:count, :height], self._mirror[:count, :height]
        torch.cumsum(values, -1, dtype=torch.float64, out=sums[..., 1:])
        mirror[..., :n] = sums[..., n:]
        mirror[..., n : 2 * n + 1] = sums.flip(-1)
        # Element (i, 2i - j) of the sums is element (i, j) of this view of the reversed rows.
        image = mirror.as_strided((count, height, n), (mirror.stride(0), 3 * n - 2, 1), 2 * n - 1 - 2 * rows.start)
        # To the right the sum excludes the key, to the left it includes the key.
        key = torch.where(self.ahead[rows], sums[..., :n], sums[..., 1:])
        return key.sub_(image).to(values.dtype).mul_(self._sign[rows])
