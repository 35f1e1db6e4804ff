"""Layer normalisation."""

from jaxtyping import Float
from torch import Tensor, nn


class Norm(nn.LayerNorm):
    """Normalises each column to mean 0 and variance 1 over its features, then applies a learned gain and bias.

        y = gain * (x - mean(x)) / sqrt(var(x) + epsilon) + bias,   var the biased variance

    Ba, Kiros, Hinton, "Layer normalization", 2016. The gain is `weight`."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(d, eps=epsilon)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return super().forward(x)
