"""Elementwise functions."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Elementwise(nn.Module):
    """A function that ignores the number of features."""

    acts_as = "elementwise"

    def __init__(self, *, d: int) -> None:
        super().__init__()


class Relu(Elementwise):
    """max(x, 0)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.relu(x)


class Gelu(Elementwise):
    """x Φ(x), where Φ is the cumulative distribution function of N(0, 1), or its approximation by tanh. Hendrycks,
    Gimpel, "Gaussian error linear units", 2016."""

    def __init__(self, *, approximation: str, d: int) -> None:
        super().__init__(d=d)
        self.approximation = approximation

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.gelu(x, approximate=self.approximation)


class Silu(Elementwise):
    """x σ(x)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.silu(x)


class Tanh(Elementwise):
    """tanh(x)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.tanh(x)


class Sigmoid(Elementwise):
    """1 / (1 + exp(-x))"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.sigmoid(x)


class Softplus(Elementwise):
    """ln(1 + exp(x))"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.softplus(x)


class Exp(Elementwise):
    """exp(x)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.exp(x)


class Abs(Elementwise):
    """|x|"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.abs(x)


class Log(nn.Module):
    """y = ln(max(x, floor))"""

    acts_as = "elementwise"

    def __init__(self, *, floor: float, d: int) -> None:
        super().__init__()
        self.floor = floor

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.log(x.clamp(min=self.floor))


class Clamp(nn.Module):
    """y = min(max(x, low), high)"""

    acts_as = "elementwise"

    def __init__(self, *, low: float, high: float, d: int) -> None:
        super().__init__()
        self.low = low
        self.high = high

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return x.clamp(self.low, self.high)
