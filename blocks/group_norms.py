"""Norms of groups of features, such as those of the heads."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.blocks.weightless import Weightless


def grouped(x: Float[Tensor, "*b d"], groups: int) -> Float[Tensor, "*b _g _c"]:
    """Splits the features into groups of adjacent ones."""
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


class GroupNorm(nn.Module):
    """Normalises each group of adjacent features of a position to mean 0 and variance 1.

        y = gain * (x - mean(x)) / sqrt(var(x) + epsilon) + bias,   var the biased variance

    Wu, He, "Group normalization", ECCV 2018. The gain is `weight`."""

    def __init__(self, *, groups: int, epsilon: float, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d))
        self.groups = groups
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        parts = grouped(x, self.groups)
        normed = F.layer_norm(parts, parts.shape[-1:], eps=self.epsilon)
        return self.weight * normed.flatten(-2) + self.bias


class RmsNorm(nn.Module):
    """Divides each group of adjacent features by its root mean square.

        y = gain * x / sqrt(mean(x²) + epsilon)

    Zhang, Sennrich, "Root mean square layer normalization", NeurIPS 2019. The gain is `weight`."""

    def __init__(self, *, groups: int, epsilon: float, gain: bool, shared: bool, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d // groups if shared else d)) if gain else None
        self.shared = shared
        self.groups = groups
        self.epsilon = epsilon

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        parts = grouped(x, self.groups)
        weight = self.weight if self.shared else None
        normed = F.rms_norm(parts, parts.shape[-1:], weight, self.epsilon).flatten(-2)
        return normed if self.shared or self.weight is None else self.weight * normed


class UnitNorm(Weightless):
    """y = x / max(|x|, epsilon), for each group of adjacent features"""

    groups: int
    epsilon: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.normalize(grouped(x, self.groups), dim=-1, eps=self.epsilon).flatten(-2)
