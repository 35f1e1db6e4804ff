"""Scores of tokens by the rows of their embedding."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.block import Mask
from archlang.blocks.embed import Embed


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
