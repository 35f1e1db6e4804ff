"""Dropout."""

from jaxtyping import Float
from torch import Tensor

from archlang.backend.kernels.dropout import dropout
from archlang.blocks.weightless import Weightless


class Dropout(Weightless):
    """In training, sets each number to 0 with probability `rate` and divides the other numbers by 1 - rate.

    Srivastava et al., "Dropout", 2014."""

    rate: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return dropout(x, self.rate, self.training)
