"""Reductions of the features of each position to one, or to one for each group."""

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.group_norms import grouped
from archlang.blocks.weightless import Weightless


class GroupReduction(Weightless):
    """A reduction of each group of adjacent features."""

    groups: int


class SumFeatures(GroupReduction):
    """y_j = Σ_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).sum(-1)


class MaxFeatures(Weightless):
    """y = max_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amax(-1, keepdim=True)


class MinFeatures(Weightless):
    """y = min_c x_c"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b 1"]:
        return x.amin(-1, keepdim=True)


class ProductFeatures(GroupReduction):
    """y_j = Π_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).prod(-1)


class LengthFeatures(GroupReduction):
    """y_j = sqrt(Σ_c x_{j · d / groups + c}²)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        lengths: Tensor = torch.linalg.vector_norm(grouped(x, self.groups), dim=-1)
        return lengths
