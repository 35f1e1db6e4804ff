"""Sums of the states so far."""

from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.padded_division import Mask
from archlang.blocks.weightless import Weightless


class CumulativeSum(Weightless):
    """y_i = Σ_{j ≤ i} x_j"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.cumsum(1)
