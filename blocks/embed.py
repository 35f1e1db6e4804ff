"""Embeddings of tokens."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.block import Mask


class Embed(nn.Module):
    """Maps each token to its row in a learned table.

        h_i = s E[x_i], then dropout

    s is sqrt(d) with token upscaling, else 1. `init` is the initialisation of E; a frozen row receives no gradient.

    Csordás, Irie, Schmidhuber, "The Devil is in the Detail", EMNLP 2021, section 3.1. For position downscaling its
    program draws from Kaiming's N(0, 2/d); the paper prints N(0, 1/d)."""

    placeless = True
    sparse_gradient = False

    def __init__(
        self,
        *,
        d: int,
        init: str,
        scaling: str,
        dropout: float,
        frozen: int,
        frozen_start: str,
        vocab: int,
        small: float = 0.02,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab, d))
        if init == "small":
            nn.init.normal_(self.weight, std=small)
        elif init == "kaiming":
            nn.init.kaiming_normal_(self.weight)
        elif init == "xavier":
            nn.init.xavier_uniform_(self.weight)
        self.scale = d**0.5 if scaling == "token_upscaling" else 1.0
        self.dropout = dropout
        self.frozen = None if frozen < 0 else frozen
        if self.frozen is not None and frozen_start == "zero":
            nn.init.zeros_(self.weight[self.frozen])

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Float[Tensor, "b n d"]:
        h = self.scale * F.embedding(x, self.weight, padding_idx=self.frozen, sparse=self.sparse_gradient)
        return dropout(h, self.dropout, self.training)
