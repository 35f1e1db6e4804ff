"""Attention to the nearest match."""

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.kernels.nearest_match import match_weights
from archlang.backend.runtime.block import Mask, MaskM
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.backend.runtime.recomputation import recomputed
from archlang.backend.runtime.stacking import is_plain
from archlang.blocks.attention import KeyedAttention, join_heads

# A of more numbers is computed in blocks of so many.
_MOST_WEIGHTS = 1 << 25
_WEIGHTS_OF_A_BLOCK = 1 << 22


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

    def weights(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b h n m"]:
        """Returns A."""
        return self._weights(*self._queries(q, products), self._keys(kv, mask_m, products), mask_m, self.offset)

    def _keys(self, kv: Float[Tensor, "b m e"], mask_m: MaskM, products: Products) -> Float[Tensor, "b h m c"]:
        return dropout(self._heads_of(self.key, "key", kv, products, mask_m), self.key_dropout, self.training)

    def _queries(
        self, q: Float[Tensor, "b n d"], products: Products
    ) -> tuple[Float[Tensor, "b h n c"], Float[Tensor, "b n _s"]]:
        """Returns α (Wq q + bq), and β D + γ: of all heads' left, then of all heads' right."""
        query = self.content_scale * (self._heads_of(self.query, "query", q, products) + self.query_bias[:, None])
        direction = mapped(self.direction, "direction", q, products)
        return query, self.direction_scale * direction + self.score_bias

    def _weights(
        self,
        query: Float[Tensor, "b h n c"],
        sides: Float[Tensor, "b n _s"],
        key: Float[Tensor, "b h m c"],
        mask_m: MaskM,
        start: int,
    ) -> Float[Tensor, "b h n m"]:
        """Returns A of queries at the positions from `start`."""
        weights = match_weights(query, key, sides, mask_m, start, self.causal)
        return F.normalize(weights, p=1.0, dim=-1) if self.normalised else weights

    def _mixed(
        self,
        q: Float[Tensor, "b n d"],
        key: Float[Tensor, "b h m c"],
        value: Float[Tensor, "b h m c"],
        mask_m: MaskM,
        start: int,
        products: Products,
    ) -> Float[Tensor, "b n d"]:
        """Returns Wo concat_heads(Σ_j A_ij v_j). Where A is large, it is computed for some queries at a time, and again
        in the backward pass: memory grows with the length, and not with its square."""
        query, sides = self._queries(q, products)

        def of_rows(query: Tensor, sides: Tensor, start: int) -> Tensor:
            return self._weights(query, sides, key, mask_m, start).to(value.dtype) @ value

        if is_plain() and (entries := query[..., 0].numel() * key.shape[2]) > _MOST_WEIGHTS:
            n = query.shape[2]
            size = max(1, _WEIGHTS_OF_A_BLOCK * n // entries)
            rows = zip(
                torch.split(query, size, 2), torch.split(sides, size, 1), range(start, start + n, size), strict=True
            )
            blocks = (recomputed(of_rows, *own) for own in rows)
            heads = torch.cat([*blocks], 2)
        else:
            heads = of_rows(query, sides, start)
        y: Tensor = self.output(join_heads(heads))
        return y

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
        key, value = self._with_cached(cache, kv, mask_m, products)
        return self._mixed(q, key, value, mask_m, self.offset + cache.start, products)

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
        y = self._mixed(q, self._keys(kv, mask_m, products), value, mask_m, self.offset, products)
        return dropout(y, self.output_dropout, self.training)
