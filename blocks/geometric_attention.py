"""Attention to the nearest match."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from math import sqrt
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from archlang.backend.past import Past
from archlang.backend.together import in_one_batch
from archlang.blocks.attention import join_heads, split_heads


def nearest_match(logits: Float[Tensor, "*b n m"], offset: int = 0) -> Float[Tensor, "*b n m"]:
    """The weights A_ij = P_ij Π_k (1 - P_ik) over the keys k nearer to i than j, P = σ(logits).

    Query i stands at position i + offset; at one distance the key to the right is nearer. A key that must not be seen
    has the logit -inf, and then leaves no trace: ln(1 - P) is exactly 0.

    The product is a sum of logarithms in the order of nearness, one running sum a query. NDR's program takes the
    difference of two running sums in the order of position, which loses digits where the sums are large."""
    n, m = logits.shape[-2:]
    place = torch.arange(offset, offset + n, device=logits.device)[:, None]
    key = torch.arange(m, device=logits.device)
    order = (2 * (key - place).abs() + (key < place)).argsort(-1)
    rank = order.argsort(-1)
    left = F.logsigmoid(-logits).gather(-1, order.expand_as(logits))  # ln(1 - P), the nearest key first
    before = F.pad(left[..., :-1].cumsum(-1), (1, 0))
    return torch.exp(F.logsigmoid(logits) + before.gather(-1, rank.expand_as(logits)))


def _match_short(logits: Float[Tensor, "k n m"], nearer: Float[Tensor, "n m m"]) -> tuple[Tensor, Tensor]:
    """The weights, and P: the sums over nearer keys are matrix products with zeros and ones, one matrix for each place
    of a query. It writes over the logits."""
    closed = F.softplus(logits, threshold=40.0)  # -ln(1 - P)
    log = logits.sub_(closed)  # ln P
    open_ = log.exp()
    return log.sub_(_by_place(closed, nearer)).exp_(), open_


def _match_short_backward(
    weights: Float[Tensor, "k n m"], open_: Float[Tensor, "k n m"], nearer: Float[Tensor, "n m m"], by: Tensor
) -> Float[Tensor, "k n m"]:
    """The gradient of the logits."""
    own = weights * by.reshape(weights.shape)
    # Each key closes itself, where it is open, and all that is farther.
    closing = _by_place(own, nearer.transpose(1, 2)).add_(own).mul_(open_)
    return own.sub_(closing)


class _NearestMatchOfShort(torch.autograd.Function):
    """`nearest_match` of short sequences: some passes and a product are all that there is, each way."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, nearer: Tensor) -> Tensor:  # Any: what torch keeps for the way back
        weights, open_ = _match_short(logits.reshape(-1, *logits.shape[-2:]).clone(), nearer)
        ctx.save_for_backward(weights, open_, nearer)
        return weights.view(logits.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # Any: as above
        weights, open_, nearer = ctx.saved_tensors
        return _match_short_backward(weights, open_, nearer, gradient).view(gradient.shape), None


class _WeightsOfShort(torch.autograd.Function):
    """The same from queries and keys on: the logits are q · k, and what is added of the query's own to the left and to
    the right. They are made in one place."""

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
        left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
        q, k = query.reshape(b * h, n, -1), key.reshape(b * h, m, -1)
        logits = query.new_empty(b, h, n, m)
        torch.where(places.ahead, right, left, out=logits)
        logits = logits.view(b * h, n, m).baddbmm_(q, k.transpose(1, 2))
        logits.view(b, h, n, m).masked_fill_(hidden, -torch.inf)
        weights, open_ = _match_short(logits, places.nearer)
        ctx.save_for_backward(weights, open_, q, k)
        ctx.places = places
        return weights.view(b, h, n, m)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:  # Any: as above
        weights, open_, q, k = ctx.saved_tensors
        b, h, n, m = gradient.shape
        found = _match_short_backward(weights, open_, ctx.places.nearer, gradient)
        by_side = _by_place(found, ctx.places.sides).view(b, h, n, 2)
        return (
            torch.bmm(found, k).view(b, h, n, -1),
            torch.bmm(found.transpose(1, 2), q).view(b, h, m, -1),
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


# Up to this length it is the fastest form; its work grows with the third power of it.
_SHORT = 64


def nearest_match_of_short(logits: Float[Tensor, "*b n m"], offset: int = 0) -> Float[Tensor, "*b n m"]:
    """`nearest_match` of few keys. It has no second derivative."""
    n, m = logits.shape[-2:]
    nearer = _places(n, m, offset, False, logits.dtype, logits.device).nearer

    def of_batch(logits: Tensor) -> Tensor:
        found: Tensor = _NearestMatchOfShort.apply(logits, nearer)  # type: ignore[no-untyped-call]
        return found

    weights: Tensor = in_one_batch(of_batch, logits)
    return weights


def weights_of_short(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h m c"],
    sides: Float[Tensor, "b n _s"],
    mask_m: Bool[Tensor, "b m"] | None,
    offset: int,
    causal: bool,
) -> Float[Tensor, "b h n m"]:
    """`nearest_match` of the logits q · k + s, where s stands in `sides`: of each head for a key to the left, then of
    each head for one to the right. It has no second derivative."""
    places = _places(query.shape[2], key.shape[2], offset, causal, query.dtype, query.device)
    unseen = places.unseen[None, None]
    masks = () if mask_m is None else (unseen | ~mask_m[:, None, None, :],)

    def of_batch(query: Tensor, key: Tensor, sides: Tensor, hidden: Tensor = unseen) -> Tensor:
        found: Tensor = _WeightsOfShort.apply(query, key, sides, hidden, places)  # type: ignore[no-untyped-call]
        return found

    weights: Tensor = in_one_batch(of_batch, query, key, sides, *masks)
    return weights


class _NearestMatch(torch.autograd.Function):
    """`nearest_match` of queries and keys at the same places, each query's own key hidden, for long sequences.

    By distance, both sides of a query are one running sum: of the keys at d steps, the left one has the right one
    before it, and both have all pairs at fewer steps. What is at (i, i + d) of a matrix is at (i, d) of a view of twice
    its width; to the left it is a view of the reversed rows. Some score matrices at a time stay in the processor's
    cache. What would be a denormal number is 0."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:  # Any: what torch keeps for the way back
        n = logits.shape[-1]
        x = logits.reshape(-1, n, n)
        weights, open_ = torch.empty_like(x), torch.empty_like(x)
        lowest = -60.0 if x.dtype == torch.float32 else -600.0
        work = _Workspace(x)
        for part in work.parts:
            given = x[part]
            closed = F.softplus(given, threshold=40.0)  # -ln(1 - P)
            right, left = work.by_distance(closed)
            before = work.running[: len(given)]
            torch.cumsum(work.pairs(right, left)[..., :-1], -1, out=before[..., 1:])
            before[..., 0] = 0
            log = torch.sub(given, closed, out=closed)  # ln P
            log -= work.by_place(before, before + right)
            torch.threshold_(log, lowest, -torch.inf)
            torch.exp(log, out=weights[part])
            torch.sigmoid(given.clamp(min=lowest), out=open_[part])
        ctx.save_for_backward(weights, open_)
        return weights.view(logits.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # Any: as above
        weights, open_ = ctx.saved_tensors
        by = gradient.reshape(weights.shape)
        found = torch.empty_like(weights)
        work = _Workspace(weights)
        for part in work.parts:
            own = torch.mul(weights[part], by[part], out=found[part])
            right, left = work.by_distance(own)
            farther = work.running[: len(own)]
            torch.cumsum(work.pairs(right, left), -1, out=farther)
            torch.sub(farther[..., -1:].clone(), farther, out=farther)
            # Each key closes itself, where it is open, and all that is farther.
            closing = work.by_place(farther + left, farther).add_(own).mul_(open_[part])
            own -= closing
        return found.view(gradient.shape)


class _Workspace:
    """Room for some score matrices, [s n n], in the order of place and in that of distance."""

    _NUMBERS = 1 << 18

    def __init__(self, like: Float[Tensor, "k n n"]) -> None:
        count, n, _ = like.shape
        size = max(1, min(count, self._NUMBERS // (n * n)))
        self.parts = [slice(start, start + size) for start in range(0, count, size)]
        self._n = n
        self._wide = [like.new_zeros(size, n, 2 * n) for _ in range(4)]
        ahead, behind = (2 * n * n, 2 * n + 1, 1), (2 * n * n, 2 * n - 1, 1)
        self._views = [
            wide.as_strided((size, n, n), strides, start)
            for wide, strides, start in zip(self._wide, (ahead, behind) * 2, (0, n - 1) * 2, strict=True)
        ]
        self.running, self._pairs = like.new_zeros(size, n, n), like.new_empty(size, n, n)

    def by_distance(self, values: Float[Tensor, "b n n"]) -> tuple[Tensor, Tensor]:
        """What stands d steps to the right of each place, and to its left; 0 where nothing does."""
        count = len(values)
        self._wide[0][:count, :, : self._n] = values
        self._wide[1][:count, :, : self._n] = values.flip(-1)
        return self._views[0][:count], self._views[1][:count]

    def pairs(self, right: Float[Tensor, "b n n"], left: Float[Tensor, "b n n"]) -> Float[Tensor, "b n n"]:
        return torch.add(right, left, out=self._pairs[: len(right)])

    def by_place(self, right: Float[Tensor, "b n n"], left: Float[Tensor, "b n n"]) -> Float[Tensor, "b n n"]:
        """The way back; the diagonal is the sum of both."""
        count = len(right)
        self._views[2][:count] = right
        self._views[3][:count] = left
        return self._wide[2][:count, :, : self._n] + self._wide[3][:count, :, : self._n].flip(-1)


# From this length on it is faster than sorting.
_LONG = _SHORT + 1


def nearest_match_of_long(logits: Float[Tensor, "*b n n"]) -> Float[Tensor, "*b n n"]:
    """`nearest_match` for queries at the places of the keys, whose own keys are hidden. It has no second derivative."""
    weights: Tensor = in_one_batch(_NearestMatch.apply, logits)
    return weights


def _is_short(query: Float[Tensor, "b h n c"], m: int) -> bool:
    """Whether the form for few keys is the fastest, and its numbers are of at least single precision."""
    exact = query.dtype in (torch.float32, torch.float64) and not torch.is_autocast_enabled("cpu")
    return query.device.type == "cpu" and m <= _SHORT and exact


@cache
def has_kernel(dtype: torch.dtype) -> bool:
    """Whether there is a kernel for these numbers: Triton comes with torch for CUDA, and has no float64 here."""
    return dtype in (torch.float32, torch.bfloat16, torch.float16) and find_spec("triton") is not None


class GeometricAttention(nn.Module):
    """Attention to the nearest match.

        P_ij = σ(α (Wq q_i + bq) · Wk h_j + β D_ij + γ),    P_ii = 0
        D_ij = w_right · q_i + b_right if j > i,    w_left · q_i + b_left if j < i
        A_ij = P_ij Π_k (1 - P_ik),    k nearer to i than j; at one distance the right key is nearer
        y_i  = Wo concat_heads(Σ_j A_ij Wv h_j)

    α, β, γ are numbers shared by the heads (`content_scale`, `direction_scale`, `score_bias`), bq is [heads, c], D has
    its own maps for each head.

    Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022, Eqs. 6-10. From its program: A can be divided by
    its sum, dropout is on the keys (the paper: on the queries), the projections start uniform within sqrt(6 / (d + c)),
    as if there were one head. We leave out its position projection, which nothing reads."""

    def __init__(
        self,
        *,
        heads: int,
        normalised: bool,
        key_dropout: float,
        output_dropout: float,
        head_dim: int,
        causal: bool,
        offset: int,
        d: int,
        e: int,
    ) -> None:
        super().__init__()
        c = head_dim or d // heads
        self.query = nn.Linear(d, heads * c, bias=False)
        self.key = nn.Linear(e, heads * c, bias=False)
        self.value = nn.Linear(e, heads * c, bias=False)
        self.output = nn.Linear(heads * c, d, bias=False)
        for projection, width in ((self.query, d), (self.key, e), (self.value, e), (self.output, d)):
            bound = sqrt(6 / (width + c))
            nn.init.uniform_(projection.weight, -bound, bound)
        self.query_bias = nn.Parameter(torch.zeros(heads, c))
        self.direction = nn.Linear(d, 2 * heads)  # all heads' left, then all heads' right
        self.content_scale = nn.Parameter(torch.full((1,), 1 / sqrt(c)))
        self.direction_scale = nn.Parameter(torch.ones(1))
        self.score_bias = nn.Parameter(torch.zeros(1))
        self.heads = heads
        self.normalised = normalised
        self.key_dropout = key_dropout
        self.output_dropout = output_dropout
        self.causal = causal
        self.offset = offset

    def weights(
        self, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"], *, mask_m: Bool[Tensor, "b m"] | None = None
    ) -> Float[Tensor, "b h n m"]:
        """A_ij"""
        key = F.dropout(split_heads(self.key(kv), self.heads), self.key_dropout, self.training)
        return self._weights(q, key, mask_m, self.offset)

    def _weights(
        self,
        q: Float[Tensor, "b n d"],
        key: Float[Tensor, "b h m c"],
        mask_m: Bool[Tensor, "b m"] | None,
        start: int,
    ) -> Float[Tensor, "b h n m"]:
        """A_ij of queries that stand at `start` and behind it"""
        n, m = q.shape[1], key.shape[2]
        query = split_heads(self.query(q), self.heads) + self.query_bias[:, None]
        if _is_short(query, m):
            sides = self.direction_scale * self.direction(q) + self.score_bias
            weights = weights_of_short(self.content_scale * query, key, sides, mask_m, start, self.causal)
            return F.normalize(weights, p=1.0, dim=-1) if self.normalised else weights
        place = torch.arange(start, start + n, device=q.device)[:, None]
        other = torch.arange(m, device=q.device)
        left, right = self.direction(q).transpose(1, 2)[..., None].chunk(2, dim=1)
        direction = torch.where(other > place, right, left)
        logits = (
            self.content_scale * (query @ key.transpose(-1, -2)) + self.direction_scale * direction + self.score_bias
        )
        hidden = other >= place if self.causal else other == place
        if mask_m is not None:
            hidden = hidden | ~mask_m[:, None, None, :]
        # The running sums want at least single precision.
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32)).masked_fill(hidden, -torch.inf)
        if logits.device.type == "cpu" and m <= _SHORT:
            weights = nearest_match_of_short(logits, start)
        elif logits.device.type == "cpu" and n == m >= _LONG and start == 0:
            weights = nearest_match_of_long(logits)
        else:
            weights = nearest_match(logits, start)
        return F.normalize(weights, p=1.0, dim=-1) if self.normalised else weights

    def by_kernel(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        value: Float[Tensor, "b h m c"],
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b h n c"]:
        """Σ_j A_ij v_j without score matrices: by the kernel for GPUs."""
        from archlang.kernels.geometric import geometric_attention

        key = F.dropout(split_heads(self.key(kv), self.heads), self.key_dropout, self.training)
        query = self.content_scale * (split_heads(self.query(q), self.heads) + self.query_bias[:, None])
        direction = self.direction_scale * self.direction(q).transpose(1, 2) + self.score_bias
        left, right = direction.chunk(2, dim=1)
        found, total = geometric_attention(
            query.to(value.dtype), key.to(value.dtype), value, left, right, mask_m,
            causal=self.causal, offset=self.offset,
        )  # fmt: skip
        return (found / total.clamp(min=1e-12)[..., None] if self.normalised else found).to(value.dtype)

    def extend(
        self,
        past: Past,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        kept = past.kept
        if past.grows[1] or not past.start:
            past.append("key", split_heads(self.key(kv), self.heads), 2)
            past.append("value", split_heads(self.value(kv), self.heads), 2)
        weights = self._weights(q, kept["key"], mask_m, self.offset + past.start)
        y: Tensor = self.output(join_heads(weights.to(kept["value"].dtype) @ kept["value"]))
        return y

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        value = split_heads(self.value(kv), self.heads)
        if value.is_cuda and has_kernel(value.dtype):
            found = self.by_kernel(q, kv, value, mask_m)
        else:
            found = self.weights(q, kv, mask_m=mask_m).to(value.dtype) @ value
        y: Tensor = self.output(join_heads(found))
        return F.dropout(y, self.output_dropout, self.training)
