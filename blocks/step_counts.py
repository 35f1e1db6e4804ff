"""Distributions of the number of steps of a loop. They draw from torch's generator of the CPU."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class UniformSteps(Weightless):
    """An integer from `low` to `high`, each equally likely."""

    low: int
    high: int

    def forward(self, batch: int) -> Float[Tensor, "b 1 1"]:
        return torch.randint(self.low, self.high + 1, (batch, 1, 1)).to(torch.get_default_dtype())


class LogNormalPoisson(Weightless):
    """steps = 1 + Poisson(rate), ln rate ~ N(ln mean - sigma²/2, sigma²)

    Geiping et al., "Scaling up test-time compute with latent reasoning", 2025, section 3.3, and its program, which adds
    1: the mean is `mean` + 1."""

    mean: int
    sigma: float

    def forward(self, batch: int) -> Float[Tensor, "b 1 1"]:
        location = math.log(self.mean) - self.sigma**2 / 2
        rate = torch.exp(location + self.sigma * torch.randn(batch, 1, 1))
        return 1 + torch.poisson(rate)
