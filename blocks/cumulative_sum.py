"""Sums of the states so far."""

from jaxtyping import Bool, Float
from torch import Tensor, nn


class CumulativeSum(nn.Module):
    """y_i = Σ_{j ≤ i} x_j"""

    def __init__(self, *, d: int) -> None:
        super().__init__()

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return x.cumsum(1)
