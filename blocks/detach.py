"""Values without gradients."""

from jaxtyping import Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class Detach(Weightless):
    """y = x, with ∂y/∂x = 0"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return x.detach()
