"""Softmax attention by content and distance."""

from math import sqrt
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.backend.runtime.block import Mask, MaskM
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.blocks.attention import KeyedAttention, initialise_fused, join_heads, split_heads, visible
from archlang.blocks.positions import counted, sinusoid


def by_distance(scores: Float[Tensor, "*b n r"], m: int) -> Float[Tensor, "*b n m"]:
    """Returns for query i and key j < m the score of the distance j - i.

    Args:
        scores: of each query for the distances -(n-1), …, m. If they end at the distance 0, and m <= n, results with
            j > i mean nothing, and must get the gradient 0."""
    n, r = scores.shape[-2:]
    if n == 0:
        return scores[..., :m]
    if r < n + m:
        scores = F.pad(scores, (0, n + m - r))
    # Row i starts at column n-1-i: the rows of a view that is one column narrower and starts at column n-1.
    width = n + m - 1
    narrower = scores.flatten(-2)[..., n - 1 : n - 1 + n * width]
    return narrower.reshape(*scores.shape[:-2], n, width)[..., :m]


class RelativeAttention(KeyedAttention):
    """Softmax attention by content and distance.

        logit_ij = α ((q_i + b) · k_j + (q_i + c) · R p_{j-i})
        A_ij     = softmax_j(logit_ij),    y_i = Wo concat_heads(Σ_j A_ij v_j)

    p_r is the sinusoid of the distance r, b is `content_bias`, c is `position_bias`, R is `position`.

    Dai et al., "Transformer-XL", 2019. With a learned α, NDR (Csordás, Irie, Schmidhuber, ICLR 2022), Eq. 17; with α =
    1/sqrt(head_dim), "The Devil is in the Detail" (the same authors, EMNLP 2021), section 2. Both papers print p_{i-j};
    their programs compute p_{j-i}, and so does this class. NDR's program has one more matrix, which is unused."""

    scale: nn.Parameter | float

    def __init__(
        self,
        *,
        heads: int,
        scale: str,
        causal: bool,
        dropout: float,
        key_dropout: float,
        output_dropout: float,
        head_dim: int,
        init: str,
        d: int,
        e: int,
    ) -> None:
        super().__init__()
        c = head_dim or d // heads
        self.query = nn.Linear(d, heads * c, bias=False)
        self.key = nn.Linear(e, heads * c, bias=False)
        self.value = nn.Linear(e, heads * c, bias=False)
        self.position = nn.Linear(d, heads * c, bias=False)
        self.output = nn.Linear(heads * c, d, bias=False)
        self.content_bias = nn.Parameter(torch.zeros(heads, c))
        self.position_bias = nn.Parameter(torch.zeros(heads, c))
        if scale == "learned":
            self.scale = nn.Parameter(torch.full((1,), 1 / sqrt(c)))
        else:
            self.scale = 1 / sqrt(c)
        self.heads = heads
        self.causal = causal
        self.dropout = dropout
        self.key_dropout = key_dropout
        self.output_dropout = output_dropout
        self._initialise(init)

    def _initialise(self, init: str) -> None:
        if init == "xavier":
            for projection in (self.query, self.key, self.value, self.position, self.output):
                nn.init.xavier_uniform_(projection.weight)
        elif init == "fused":
            nn.init.xavier_uniform_(self.query.weight)
            nn.init.xavier_uniform_(self.position.weight)
            initialise_fused(self.key, self.value)

    def _place(
        self, q: Float[Tensor, "b n d"], scores: Float[Tensor, "b h n r"], m: int, start: int, products: Products
    ) -> Float[Tensor, "b h n m"]:
        """Returns the position term of the logits, from (q_i + c) · R p_r for r = -(start+n-1), …, m. Where later keys
        are hidden and m <= n, r may end at 0."""
        return by_distance(scores[..., : q.shape[1] + m], m)

    def _distances(self, n: int, m: int) -> int:
        """Returns the number of distances, from -(n-1), whose scores are needed."""
        # A comparison of traced lengths would be a guard on them.
        return n if self.causal and not torch.compiler.is_compiling() and m <= n else n + m

    def weights(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b h n m"]:
        """Returns A, before dropout."""
        n, m = q.shape[1], kv.shape[1]
        key = dropout(self._heads_of(self.key, "key", kv, products, mask_m), self.key_dropout, self.training)
        place = dropout(self._place_keys(q, 1 - n, self._distances(n, m)), self.key_dropout, self.training)
        return masked_softmax(self._logits(q, key, place, 0, products), visible(n, m, self.causal, mask_m, q.device))

    def extend(
        self,
        cache: BlockCache,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
        **_: Mask,
    ) -> Float[Tensor, "b n d"]:
        tensors, start, n = cache.tensors, cache.start, q.shape[1]
        key, value = self._with_cached(cache, kv, mask_m, products)
        m = key.shape[2]
        # The cache holds the distances up to a power of two.
        reach = 1 << max(start + n, m).bit_length()
        if "place" not in tensors or tensors["place"].shape[2] < 2 * reach:
            tensors["place"] = self._place_keys(q, -reach, 2 * reach)
        place = tensors["place"].narrow(2, tensors["place"].shape[2] // 2 + 1 - n - start, n + m + start)
        logits = self._logits(q, key, place, start, products)
        weights = masked_softmax(logits, visible(n, m, self.causal, mask_m, q.device, start))
        y: Tensor = self.output(join_heads(weights.to(value.dtype) @ value))
        return y

    def _place_keys(self, like: Float[Tensor, "b n d"], first: int, count: int) -> Float[Tensor, "_b h r c"]:
        """Returns R p_r for `count` distances from `first`."""

        def place_keys() -> Tensor:
            places = sinusoid(counted(count, like, start=first), like.shape[2]).to(like.dtype)
            return split_heads(self.position(places)[None], self.heads)

        return cached_in_call((self, first, count, like.shape[2], like.dtype, like.device), place_keys)

    def _logits(
        self,
        q: Float[Tensor, "b n d"],
        key: Float[Tensor, "b h m c"],
        place: Float[Tensor, "_b h r c"],
        start: int,
        products: Products,
    ) -> Float[Tensor, "b h n m"]:
        """Returns the logits of queries at the positions from `start`, from R p_r for r = -(start+n-1), …, m."""
        query = self._heads_of(self.query, "query", q, products)
        content = (query + self.content_bias[:, None]) @ key.transpose(-1, -2)
        scores = (query + self.position_bias[:, None]) @ place.transpose(-1, -2)
        return self.scale * (content + self._place(q, scores, key.shape[2], start, products))

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
        **_: Mask,
    ) -> Float[Tensor, "b n d"]:
        weights = dropout(self.weights(q, kv, mask_m=mask_m, products=products), self.dropout, self.training)
        value = self._heads_of(self.value, "value", kv, products, mask_m)
        y: Tensor = self.output(join_heads(weights.to(value.dtype) @ value))
        return dropout(y, self.output_dropout, self.training)


class AbsrelAttention(RelativeAttention):
    """Relative attention in which each query weighs distances against absolute positions with a gate.

        logit_ij = α ((q_i + b) · k_j + r_i (q_i + c) · R p_{j-i} + (1 - r_i) (q_i + c) · R p_j)
        r_i      = σ(w · h_i + b_r)

    NDR (Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022), Eqs. 16-17. The paper has one gate for all
    heads, its program one per head. The gate is initialised as in torch's Linear."""

    def __init__(self, *, gates: str, heads: int, d: int, **statics: Any) -> None:  # Any: as of RelativeAttention
        super().__init__(heads=heads, d=d, **statics)
        self.relative_gate = nn.Linear(d, heads if gates == "per_head" else 1)

    def _distances(self, n: int, m: int) -> int:
        return n + m  # those of positive distances are those of absolute positions

    def _place(
        self, q: Float[Tensor, "b n d"], scores: Float[Tensor, "b h n r"], m: int, start: int, products: Products
    ) -> Float[Tensor, "b h n m"]:
        gate = mapped(self.relative_gate, "relative_gate", q, products)
        relative = torch.sigmoid(gate).transpose(1, 2)[..., None]
        # The position of key j is its distance from position 0, whose score follows those of the negative distances.
        placed = scores.narrow(-1, max(0, start + q.shape[1] - 1), m)
        return relative * super()._place(q, scores, m, start, products) + (1 - relative) * placed
