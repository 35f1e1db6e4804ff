"""Tokens as vectors, scores of tokens, and learned sequences."""

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


class Unembed(nn.Module):
    """Scores each token of the vocabulary by its row in the table of an embedding.

        y_i = E h_i + b

    Press, Wolf, "Using the output embedding to improve language models", 2017; the bias is in Devil's program."""

    bias: nn.Parameter | None
    placeless = True

    def __init__(self, *, table: Embed, bias: bool, d: int) -> None:
        super().__init__()
        # The table belongs to the embedding. In a tuple it is not registered, so it is saved and trained only once.
        self._table = (table,)
        self.bias = nn.Parameter(torch.zeros(len(table.weight))) if bias else None

    def forward(self, y: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n vocab"]:
        return F.linear(y, self._table[0].weight, self.bias)


class OneHot(nn.Module):
    """y_i[c] = 1 if c = x_i, else 0"""

    units: Tensor
    placeless = True

    def __init__(self, *, vocab: int) -> None:
        super().__init__()
        # A buffer, so that it has the device and dtype of the model.
        self.register_buffer("units", torch.eye(vocab), persistent=False)

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Float[Tensor, "b n vocab"]:
        return self.units[x]


class IsToken(nn.Module):
    """y_i = 1 if x_i = token, else 0"""

    one: Tensor
    placeless = True

    def __init__(self, *, token: int, vocab: int) -> None:
        super().__init__()
        self.token = token
        self.register_buffer("one", torch.ones(1), persistent=False)

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Float[Tensor, "b n 1"]:
        return x.eq(self.token)[..., None] * self.one


class Zeros(nn.Module):
    """y_i = 0 for each token"""

    zero: Tensor
    placeless = True

    def __init__(self, *, d: int, vocab: int) -> None:
        super().__init__()
        # A buffer, so that it has the device and dtype of the model.
        self.register_buffer("zero", torch.zeros(d), persistent=False)

    def forward(self, x: Int[Tensor, "b n"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self.zero.expand(*x.shape, -1)


class Learned(nn.Module):
    """A sequence of learned vectors, the same for every sample.

    They start at zero, or are drawn from N(0, 1). Didolkar et al., "Temporal Latent Bottleneck", 2022."""

    def __init__(self, *, slots: int, d: int, init: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(slots, d) if init == "zeros" else torch.randn(slots, d))

    def forward(self, batch: int) -> Float[Tensor, "b slots d"]:
        return self.weight.expand(batch, -1, -1)
