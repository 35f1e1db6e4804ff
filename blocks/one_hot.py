"""Tokens as unit vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archlang.backend.runtime.block import Mask


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
