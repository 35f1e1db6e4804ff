"""Random numbers: noise, dropout, and distributions of the number of steps of a loop."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.block import Weightless


class Noise(Weightless):
    """y ~ N(0, std²), drawn from torch's generator; in evaluation y = 0 unless it is `drawn`"""

    std: float
    evaluation: str

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if not self.std or not (self.training or self.evaluation == "drawn"):
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
    """y ~ U(-bound, bound), drawn from torch's generator; in evaluation y = 0 unless it is `drawn`"""

    bound: float
    evaluation: str

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        if not self.bound or not (self.training or self.evaluation == "drawn"):
            return torch.zeros_like(x)
        return self.bound * (2 * torch.rand_like(x) - 1)


class Dropout(Weightless):
    """In training, sets each number to 0 with probability `rate` and divides the other numbers by 1 - rate.

    Srivastava et al., "Dropout", 2014."""

    rate: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return dropout(x, self.rate, self.training)


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
