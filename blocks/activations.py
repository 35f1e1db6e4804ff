"""Elementwise functions."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.block import Weightless


class Elementwise(Weightless):
    """A function of each number."""

    acts_as = "elementwise"


class Relu(Elementwise):
    """max(x, 0)"""

    acts_as = "positive"

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.relu(x)


class Gelu(Elementwise):
    """x Φ(x), where Φ is the cumulative distribution function of N(0, 1), or its approximation by tanh. Hendrycks,
    Gimpel, "Gaussian error linear units", 2016."""

    approximation: str

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


class Log(Elementwise):
    """y = ln(max(x, floor))"""

    floor: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.log(x.clamp(min=self.floor))


class Clamp(Elementwise):
    """y = min(max(x, low), high)"""

    low: float
    high: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return x.clamp(self.low, self.high)


class Sin(Elementwise):
    """sin(x)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.sin(x)


class Cos(Elementwise):
    """cos(x)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.cos(x)


class Sqrt(Elementwise):
    """y = sqrt(max(x, floor))"""

    floor: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.sqrt(x.clamp(min=self.floor))


class Floor(Elementwise):
    """⌊x⌋"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.floor(x.detach())


class Ceil(Elementwise):
    """⌈x⌉"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.ceil(x.detach())


class Round(Elementwise):
    """The nearest integer, the even one of two"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.round(x.detach())


class Sign(Elementwise):
    """-1, 0 or 1"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return torch.sign(x.detach())
