"""Softmax over features, and over positions."""

from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.blocks.weightless import Weightless


class Softmax(Weightless):
    """y_c = exp(x_c) / Σ_j exp(x_j), over the features"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return masked_softmax(x, None)


class SoftmaxPositions(Weightless):
    """y_i = exp(x_i) / Σ_j exp(x_j), over the real positions; 0 at padding"""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return masked_softmax(x, None if mask_n is None else mask_n[..., None], 1)
