"""Reductions of the features of each position to one."""

from jaxtyping import Float
from torch import Tensor, nn


class FeatureReduction(nn.Module):
    """A reduction that ignores the number of features."""

    def __init__(self, *, d: int) -> None:
        super().__init__()


class SumFeatures(FeatureReduction):
    """y = Σ_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.sum(-1, keepdim=True)


class MaxFeatures(FeatureReduction):
    """y = max_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amax(-1, keepdim=True)


class MinFeatures(FeatureReduction):
    """y = min_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amin(-1, keepdim=True)
