"""The buckets of T5 for distances."""

from math import log

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class DistanceBuckets(Weightless):
    """The bucket of a distance: exact for short ones, then ever wider.

        y = x                                                        for 0 ≤ x < h,    h = buckets / 2
        y = min(h + ⌊h ln(x / h) / ln(furthest / h)⌋, buckets - 1)    for x ≥ h
        y = 0                                                        for x < 0

    Raffel et al., "Exploring the limits of transfer learning with a unified text-to-text transformer", 2020, for one
    direction."""

    buckets: int
    furthest: int

    def forward(self, x: Float[Tensor, "*b d"], **masks: Tensor | None) -> Float[Tensor, "*b d"]:
        half = self.buckets // 2
        distance = x.detach().clamp(min=0)
        steps = half * (distance.clamp(min=half) / half).log() / log(self.furthest / half)
        far = (half + steps.floor()).clamp(max=self.buckets - 1)
        return torch.where(distance < half, distance, far)
