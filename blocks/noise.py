"""Random numbers."""

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class Noise(Weightless):
    """y ~ N(0, std²) in training, drawn from torch's generator; y = 0 in evaluation"""

    std: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if not self.training or not self.std:
            return torch.zeros_like(x)
        return self.std * torch.randn_like(x)


class GumbelNoise(Weightless):
    """y = -scale · ln(-ln(u)), u ~ U(0, 1) from torch's generator

    Gumbel, "Statistical theory of extreme values", 1954."""

    scale: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if not self.scale:
            return torch.zeros_like(x)
        least = torch.finfo(x.dtype).tiny
        exponential = -torch.log(torch.rand_like(x).clamp(min=least))
        return -self.scale * torch.log(exponential.clamp(min=least))


class UniformNoise(Weightless):
    """y ~ U(-bound, bound), drawn from torch's generator"""

    bound: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if not self.bound:
            return torch.zeros_like(x)
        return self.bound * (2 * torch.rand_like(x) - 1)
