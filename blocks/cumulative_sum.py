"""Sums of the states so far."""

from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.padded_division import Mask


class CumulativeSum(nn.Module):
    """y_i = Σ_{j ≤ i} x_j"""

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.cumsum(1)
