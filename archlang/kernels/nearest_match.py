"""The weights of geometric attention on a processor: from queries and keys on, with few passes over the scores.

Both forms equal the block's own `nearest_match`. They have no second derivative."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import e, log2
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch.autograd.function import once_differentiable

from archlang.backend.runtime.stacking import in_one_batch

# Up to so many keys the form for few keys is the faster one; its work grows with the third power of them.
SHORT = 64


def weights_of_short(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h m c"],
    sides: Float[Tensor, "b n _s"],
    mask_m: Bool[Tensor, "b m"] | None = None,
    offset: int = 0,
    causal: bool = False,
) -> Float[Tensor, "b h n m"]:
    """The weights of the logits q · k + s, where s stands in `sides`: of each head for a key to the left, then of each
    head for one to the right. Query i stands at position i + offset."""
    places = _places(query.shape[2], key.shape[2], offset, causal, _wide(query), query.device)
    return _weights(_OfShort, query, key, sides, places.unseen, mask_m, places)


def weights_of_long(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h n c"],
    sides: Float[Tensor, "b n _s"],
    mask_n: Bool[Tensor, "b n"] | None = None,
    causal: bool = False,
) -> Float[Tensor, "b h n n"]:
    """The same for queries at the places of the keys. What would be a denormal number is 0."""
    place = torch.arange(query.shape[2], device=query.device)
    unseen = place >= place[:, None] if causal else place == place[:, None]
    return _weights(_OfLong, query, key, sides, unseen, mask_n)


def _weights(
    form: Any,  # torch has no type for it
    query: Tensor,
    key: Tensor,
    sides: Tensor,
    unseen: Bool[Tensor, "n m"],
    mask_m: Bool[Tensor, "b m"] | None,
    *more: object,
) -> Tensor:
    # The sums want at least single precision.
    wide = _wide(query)

    def of_batch(query: Tensor, key: Tensor, sides: Tensor, mask: Tensor | None = None) -> Tensor:
        hidden = unseen[None, None] if mask is None else unseen | ~mask[:, None, None, :]
        with torch.autocast(query.device.type, enabled=False):
            found: Tensor = form.apply(query.to(wide), key.to(wide), sides.to(wide), hidden, *more)
        return found

    weights: Tensor = in_one_batch(of_batch, query, key, sides, *(() if mask_m is None else (mask_m,)))
    return weights


def _wide(like: Tensor) -> torch.dtype:
    return torch.promote_types(like.dtype, torch.float32)


def _left_and_right(sides: Float[Tensor, "b n _s"]) -> tuple[Float[Tensor, "k n 1"], Float[Tensor, "k n 1"]]:
    left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
    return left.flatten(0, 1), right.flatten(0, 1)


# Few keys


class _OfShort(torch.autograd.Function):
    """The sums over nearer keys are matrix products with zeros and ones, one matrix for each place of a query."""

    @staticmethod
    def forward(
        ctx: Any,  # what torch keeps for the way back
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        sides: Float[Tensor, "b n _s"],
        hidden: Bool[Tensor, "_b _1 n m"],
        places: _Places,
    ) -> Float[Tensor, "b h n m"]:
        b, h, n, _ = query.shape
        m = key.shape[2]
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        left, right = _left_and_right(sides)
        logits = torch.where(places.ahead, right, left).baddbmm_(q, k.transpose(1, 2))
        logits.view(b, h, n, m).masked_fill_(hidden, -torch.inf)
        closed = F.softplus(logits, threshold=40.0)  # -ln(1 - P)
        log = logits.sub_(closed)  # ln P
        open_ = log.exp()
        weights = log.sub_(_by_place(closed, places.nearer)).exp_()
        ctx.save_for_backward(weights, open_, q, k)
        ctx.places = places
        return weights.view(b, h, n, m)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:  # Any: as above
        weights, open_, q, k = ctx.saved_tensors
        places: _Places = ctx.places
        b, h, n, m = gradient.shape
        own = weights * gradient.reshape(weights.shape)
        # Each key closes itself, where it is open, and all that is farther.
        closing = _by_place(own, places.nearer.transpose(1, 2)).add_(own).mul_(open_)
        found = own.sub_(closing)
        by_side = _by_place(found, places.sides).view(b, h, n, 2)
        return (
            torch.bmm(found, k).view(b, h, n, k.shape[-1]),
            torch.bmm(found.transpose(1, 2), q).view(b, h, m, q.shape[-1]),
            by_side.permute(0, 2, 3, 1).reshape(b, n, 2 * h),
            None,
            None,
        )


def _by_place(values: Float[Tensor, "k n m"], maps: Float[Tensor, "n m _l"]) -> Float[Tensor, "k n _l"]:
    """values[:, i] @ maps[i] for each i"""
    return torch.bmm(values.transpose(0, 1), maps).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class _Places:
    """What depends on the places of queries and keys alone."""

    ahead: Bool[Tensor, "n m"]
    """the key is to the right of the query"""
    unseen: Bool[Tensor, "n m"]
    """the key is the query's own; or to the right of it, where the block is causal"""
    nearer: Float[Tensor, "n m m"]
    """for each query a matrix: 1 at (k, j) where the key k is nearer than j, or as near and to the right"""
    sides: Float[Tensor, "n m 2"]
    """for each query a matrix: 1 at (k, 0) where the key k is to the left, or its own, and at (k, 1) where it is to the
    right"""


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
    """The sum over nearer keys is the difference of a running sum at a key and at its mirror image, as in NDR's
    program; in double precision it loses nothing. So many rows at a time as stay in the processor's cache: beside the
    weights and P no score matrix is ever whole."""

    @staticmethod
    def forward(
        ctx: Any,  # what torch keeps for the way back
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h n c"],
        sides: Float[Tensor, "b n _s"],
        hidden: Bool[Tensor, "_b _1 n n"],
    ) -> Float[Tensor, "b h n n"]:
        b, h, n, _ = query.shape
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        left, right = _left_and_right(sides)
        samples = torch.arange(b * h, device=q.device) // h
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
            torch.exp2(log.mul_(log2(e)), out=weights[part])  # torch has it faster than exp
        ctx.save_for_backward(weights, open_, q, k)
        return weights.view(b, h, n, n)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # Any: as above
        weights, open_, q, k = ctx.saved_tensors
        b, h, n, _ = gradient.shape
        by_query, by_key = torch.empty_like(q), torch.zeros_like(k)
        by_side = q.new_empty(b * h, n, 2)
        by = gradient.reshape(weights.shape)
        work = _Workspace(weights)
        for part in work.parts():
            matrices, rows = part
            own = weights[part] * by[part]
            whole = own.sum(-1, keepdim=True)
            # Each key closes itself, where it is open, and all that is farther.
            nearer = work.nearer(own, rows)
            found = own.sub_(torch.sub(whole, nearer, out=nearer).mul_(open_[part]))
            by_query[part] = found @ k[matrices]
            by_key[matrices].baddbmm_(found.transpose(1, 2), q[part])
            to_right = torch.sum(found * work.ahead[rows], -1)
            by_side[part] = torch.stack([found.sum(-1) - to_right, to_right], -1)
        sides = by_side.view(b, h, n, 2).permute(0, 2, 3, 1).reshape(b, n, 2 * h)
        return by_query.view(b, h, n, k.shape[-1]), by_key.view(b, h, n, q.shape[-1]), sides, None


def _part(n: int) -> int:
    """So many numbers are at work at a time. As measured: more of short rows leave the processor's cache, and fewer of
    long ones keep its cores from sharing them."""
    return 1 << (17 if n <= 512 else 18)


class _Workspace:
    """Room for the running sums of some rows of a score matrix, or of some whole ones."""

    def __init__(self, like: Float[Tensor, "k n n"]) -> None:
        self._count, n, _ = like.shape
        self._n = n
        numbers = _part(n)
        self._rows = max(1, min(n, numbers // max(n, 1)))
        self._matrices = max(1, min(self._count, numbers // max(self._rows * n, 1)))
        # Before the first key the running sum is 0, behind the last one the whole.
        self._sums = like.new_empty(self._matrices, self._rows, n + 1, dtype=torch.float64)
        self._sums[..., 0] = 0
        self._mirror = like.new_empty(self._matrices, self._rows, 3 * n, dtype=torch.float64)
        self._mirror[..., 2 * n :] = 0
        place = torch.arange(n, device=like.device)
        self.ahead = place > place[:, None]
        """the key is to the right of the query"""
        self._sign = 2 * self.ahead.to(like.dtype) - 1

    def parts(self) -> Iterator[tuple[slice, slice]]:
        """Matrices and their rows."""
        for matrix in range(0, self._count, self._matrices):
            for row in range(0, self._n, self._rows):
                yield (
                    slice(matrix, min(matrix + self._matrices, self._count)),
                    slice(row, min(row + self._rows, self._n)),
                )

    def nearer(self, values: Float[Tensor, "k r n"], rows: slice) -> Float[Tensor, "k r n"]:
        """For each key the sum of the values at those that are nearer to its query."""
        count, height, n = values.shape
        sums, mirror = self._sums[:count, :height], self._mirror[:count, :height]
        torch.cumsum(values, -1, dtype=torch.float64, out=sums[..., 1:])
        mirror[..., :n] = sums[..., n:]
        mirror[..., n : 2 * n + 1] = sums.flip(-1)
        # What stands at (i, 2i - j) of the sums is at (i, j) of this view of the reversed rows.
        image = mirror.as_strided((count, height, n), (mirror.stride(0), 3 * n - 2, 1), 2 * n - 1 - 2 * rows.start)
        # To the right the sum up to the key, to the left the one that has it.
        key = torch.where(self.ahead[rows], sums[..., :n], sums[..., 1:])
        return key.sub_(image).to(values.dtype).mul_(self._sign[rows])
