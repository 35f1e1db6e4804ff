"""Attention to the nearest match."""

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.kernels.nearest_match import SHORT, match_weights
from archlang.backend.kernels.processor import has_kernel
from archlang.backend.runtime.block import Mask, MaskM
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.backend.runtime.stacking import needs_plain_form
from archlang.blocks.attention import KeyedAttention, join_heads


class GeometricAttention(KeyedAttention):
    """Attention to the nearest match.

        P_ij = σ(α (Wq q_i + bq) · Wk h_j + β D_ij + γ),    P_ii = 0
        D_ij = w_right · q_i + b_right if j > i,    w_left · q_i + b_left if j < i
        A_ij = P_ij Π_k (1 - P_ik),    k nearer to i than j; at equal distance the right key is nearer
        y_i  = Wo concat_heads(Σ_j A_ij Wv h_j)

    α, β, γ are numbers shared by the heads (`content_scale`, `direction_scale`, `score_bias`), bq is [heads, c], and
    the maps of D are separate for each head.

    Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022, Eqs. 6-10. As in its program, A can be divided by
    its sum, dropout applies to the keys (in the paper, to the queries), and the projections start uniform within sqrt(6
    / (d + c)), as for a single head. The unused position projection of the program is omitted."""

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

    def _queries(self, q: Float[Tensor, "b n d"], products: Products) -> Float[Tensor, "b h n c"]:
        return self.content_scale * (self._heads_of(self.query, "query", q, products) + self.query_bias[:, None])

    def weights(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b h n m"]:
        """Returns A."""
        key = dropout(self._heads_of(self.key, "key", kv, products, mask_m), self.key_dropout, self.training)
        return self._weights(q, key, mask_m, self.offset, products)

    def _weights(
        self, q: Float[Tensor, "b n d"], key: Float[Tensor, "b h m c"], mask_m: MaskM, start: int, products: Products
    ) -> Float[Tensor, "b h n m"]:
        """Returns A of queries at the positions from `start`."""
        query = self._queries(q, products)
        direction = mapped(self.direction, "direction", q, products)  # all heads' left, then all heads' right
        sides = self.direction_scale * direction + self.score_bias
        weights = match_weights(query, key, sides, mask_m, start, self.causal)
        return F.normalize(weights, p=1.0, dim=-1) if self.normalised else weights

    def by_kernel(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        value: Float[Tensor, "b h m c"],
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b h n c"]:
        """Returns Σ_j A_ij v_j by the kernel for GPUs, which stores no matrix of scores."""
        from archlang.backend.kernels.geometric import geometric_attention

        key = dropout(self._heads_of(self.key, "key", kv, products, mask_m), self.key_dropout, self.training)
        query = self._queries(q, products)
        direction = (
            self.direction_scale * mapped(self.direction, "direction", q, products).transpose(1, 2) + self.score_bias
        )
        left, right = direction.chunk(2, dim=1)
        result, total = geometric_attention(
            query.to(value.dtype), key.to(value.dtype), value, left, right, mask_m,
            causal=self.causal, offset=self.offset,
        )  # fmt: skip
        return (result / total.clamp(min=1e-12)[..., None] if self.normalised else result).to(value.dtype)

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
        key, value = self._cached(cache, kv, mask_m, products)
        weights = self._weights(q, key, mask_m, self.offset + cache.start, products)
        y: Tensor = self.output(join_heads(weights.to(value.dtype) @ value))
        return y

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
        **_: Mask,
    ) -> Float[Tensor, "b n d"]:
        value = self._heads_of(self.value, "value", kv, products, mask_m)
        # The score matrices of few keys are small, and few products of torch take less time than the kernel.
        if value.is_cuda and value.shape[2] > SHORT and has_kernel(value.dtype) and not needs_plain_form():
            heads = self.by_kernel(q, kv, value, mask_m, products)
        else:
            heads = self.weights(q, kv, mask_m=mask_m, products=products).to(value.dtype) @ value
        y: Tensor = self.output(join_heads(heads))
        return dropout(y, self.output_dropout, self.training)
