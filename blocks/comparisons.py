"""Comparisons of numbers with a static, as 1 or 0."""

from jaxtyping import Float
from torch import Tensor, nn

from archlang.blocks.weightless import Weightless


class Greater(Weightless):
    """y = 1 if x > than, else 0"""

    than: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (x > self.than).to(x.dtype)


class Equal(nn.Module):
    """y = 1 if x = to, else 0"""

    def __init__(self, *, to: float, d: int) -> None:
        super().__init__()
        self.value = to

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (x == self.value).to(x.dtype)
