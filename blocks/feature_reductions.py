"""Reductions of the features of each position to one."""

from jaxtyping import Float
from torch import Tensor, nn

from archlang.blocks.group_norms import grouped


class FeatureReduction(nn.Module):
    """A reduction that ignores the number of features."""

    def __init__(self, *, d: int) -> None:
        super().__init__()


class SumFeatures(FeatureReduction):
    """y_j = Σ_c x_{j · d / groups + c}"""

    def __init__(self, *, groups: int, d: int) -> None:
        super().__init__(d=d)
        self.groups = groups

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).sum(-1)


class MaxFeatures(FeatureReduction):
    """y = max_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amax(-1, keepdim=True)


class MinFeatures(FeatureReduction):
    """y = min_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amin(-1, keepdim=True)
