"""Sequences of zero vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from archlang.backend.runtime.block import Mask


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
