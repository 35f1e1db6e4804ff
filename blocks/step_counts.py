"""Distributions of the number of steps of a loop. They draw from torch's generator of the CPU."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class UniformSteps(nn.Module):
    """An integer from `low` to `high`, each equally likely."""

    def __init__(self, *, low: int, high: int) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, batch: int) -> Float[Tensor, "b 1 1"]:
        return torch.randint(self.low, self.high + 1, (batch, 1, 1)).to(torch.get_default_dtype())


class LogNormalPoisson(nn.Module):
    """steps = 1 + Poisson(rate), ln rate ~ N(ln mean - sigma²/2, sigma²)

    Geiping et al., "Scaling up test-time compute with latent reasoning", 2025, section 3.3, and its program, which adds
    1: the mean is `mean` + 1."""

    def __init__(self, *, mean: int, sigma: float) -> None:
        super().__init__()
        self.location = math.log(mean) - sigma**2 / 2
        self.sigma = sigma

    def forward(self, batch: int) -> Float[Tensor, "b 1 1"]:
        rate = torch.exp(self.location + self.sigma * torch.randn(batch, 1, 1))
        return 1 + torch.poisson(rate)
