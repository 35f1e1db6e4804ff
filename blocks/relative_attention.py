"""Softmax attention by content and distance."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.blocks.attention import join_heads, masked_softmax, split_heads, visible
from archlang.blocks.positions import counted, sinusoid


def by_distance(scores: Float[Tensor, "b h n r"]) -> Float[Tensor, "b h n m"]:
    """Picks for query i and key j the score of the distance j - i, out of those of -(n-1), …, m in order."""
    n = scores.shape[-2]
    m = scores.shape[-1] - n
    # Row i wants its columns from n-1-i on: rows that are one shorter, read from column n-1 of the first.
    width = n + m - 1
    shorter = scores.flatten(-2)[..., n - 1 : n - 1 + n * width]
    return shorter.reshape(*scores.shape[:-2], n, width)[..., :m]


class RelativeAttention(nn.Module):
    """Softmax attention by content and distance.

        logit_ij = α ((q_i + b) · k_j + (q_i + c) · R p_{j-i})
        A_ij     = softmax_j(logit_ij),    y_i = Wo concat_heads(Σ_j A_ij v_j)

    p_r is the sinusoid of the distance r, b is `content_bias`, c is `position_bias`, R is `position`.

    Dai et al., "Transformer-XL", 2019. With a learned α it is that of NDR (Csordás, Irie, Schmidhuber, ICLR 2022), Eq.
    17; with α = 1/sqrt(head_dim) that of "The Devil is in the Detail" (the same, EMNLP 2021), section 2. Both papers
    print p_{i-j}; their programs compute p_{j-i}, and so do we. NDR's has one more matrix, which nothing reads."""

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
            width, e = self.key.weight.shape
            bound = sqrt(6 / (2 * width + e))
            nn.init.uniform_(self.key.weight, -bound, bound)
            nn.init.uniform_(self.value.weight, -bound, bound)

    def _place(self, q: Float[Tensor, "b n d"], scores: Float[Tensor, "b h n r"]) -> Float[Tensor, "b h n m"]:
        """The part of a logit that comes from places, given (q_i + c) · R p_r for the distances r = -(n-1), …, m."""
        return by_distance(scores)

    def weights(
        self, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"], *, mask_m: Bool[Tensor, "b m"] | None = None
    ) -> Float[Tensor, "b h n m"]:
        """A, before its dropout."""
        n, m = q.shape[1], kv.shape[1]
        query = split_heads(self.query(q), self.heads)
        key = F.dropout(split_heads(self.key(kv), self.heads), self.key_dropout, self.training)
        places = sinusoid(counted(n + m, q, start=1 - n), q.shape[2]).to(q.dtype)
        place = F.dropout(split_heads(self.position(places)[None], self.heads), self.key_dropout, self.training)
        content = (query + self.content_bias[:, None]) @ key.transpose(-1, -2)
        position = self._place(q, (query + self.position_bias[:, None]) @ place.transpose(-1, -2))
        return masked_softmax(self.scale * (content + position), visible(n, m, self.causal, mask_m, q.device))

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        weights = F.dropout(self.weights(q, kv, mask_m=mask_m), self.dropout, self.training)
        value = split_heads(self.value(kv), self.heads)
        y: Tensor = self.output(join_heads(weights.to(value.dtype) @ value))
        return F.dropout(y, self.output_dropout, self.training)
