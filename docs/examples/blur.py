"""The Python of blur.arch: a block that averages similar positions."""

from __future__ import annotations

from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped


class Blur(nn.Module):
    """y_i = Wo Σ_j A_ij Wv h_j,    A_ij = softmax_j(Wq q_i · Wk h_j)"""

    def __init__(self, *, width: int, dropout: float, d: int, e: int) -> None:
        super().__init__()
        self.query = nn.Linear(d, width, bias=False)
        self.key = nn.Linear(e, width, bias=False)
        self.value = nn.Linear(e, width, bias=False)
        self.output = nn.Linear(width, d, bias=False)
        self.dropout = dropout

    def weights(
        self, q: Tensor, kv: Tensor, *, mask_m: Tensor | None = None, products: Products = NO_PRODUCTS
    ) -> Tensor:
        """A, [b h n m] with one head"""
        query, key = mapped(self.query, "query", q, products), mapped(self.key, "key", kv, products)
        logits = query @ key.transpose(1, 2)
        if mask_m is not None:
            logits = logits.masked_fill(~mask_m[:, None, :], -1e9)
        return logits.softmax(-1)[:, None]

    def forward(
        self,
        q: Tensor,
        kv: Tensor,
        *,
        mask_n: Tensor | None = None,
        mask_m: Tensor | None = None,
        products: Products = NO_PRODUCTS,
    ) -> Tensor:
        weights = self.weights(q, kv, mask_m=mask_m, products=products)[:, 0]
        if mask_m is not None:
            weights = weights.masked_fill(~mask_m[:, None, :], 0.0)
        y: Tensor = self.output(weights @ mapped(self.value, "value", kv, products))
        return dropout(y, self.dropout, self.training)
