"""Dropout."""

from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout


class Dropout(nn.Module):
    """In training, sets each number to 0 with probability `rate` and divides the other numbers by 1 - rate.

    Srivastava et al., "Dropout", 2014."""

    def __init__(self, *, rate: float, d: int) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return dropout(x, self.rate, self.training)
