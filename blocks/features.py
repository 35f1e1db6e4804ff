"""Features of a position: norms, selections, arrangements, reductions, and arithmetic on distributions."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.block import Weightless


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


class Norm(nn.LayerNorm):
    """Normalises each column to mean 0 and variance 1 over its features, then applies a learned gain and bias.

        y = gain * (x - mean(x)) / sqrt(var(x) + epsilon) + bias,   var the biased variance

    Ba, Kiros, Hinton, "Layer normalization", 2016. The gain is `weight`."""

    def __init__(self, *, epsilon: float, d: int) -> None:
        super().__init__(d, eps=epsilon)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return super().forward(x)


class SliceFeatures(Weightless):
    """y_c = x_{start + c}, c < width"""

    acts_as = "part"

    start: int
    width: int

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b width"]:
        return x[..., self.start : self.start + self.width]


class RepeatFeatures(Weightless):
    """y_{c · times + j} = x_c, j < times"""

    acts_as = "repeated"

    times: int

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _repeated"]:
        return x[..., None].expand(*x.shape, self.times).flatten(-2)


class TileFeatures(Weightless):
    """y_{j · d + c} = x_c, j < times"""

    times: int

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _tiled"]:
        return torch.cat([x] * self.times, -1)


class TransposeFeatures(Weightless):
    """y_{c k + g} = x_{g d / k + c}"""

    k: int

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return grouped(x, self.k).transpose(-1, -2).flatten(-2)


class MixGroups(Weightless):
    """y_i = Σ_j w_{ik+j} x_j, x_j being the j-th of k groups of features"""

    k: int

    def forward(self, x: Float[Tensor, "*b d"], w: Float[Tensor, "*b e"]) -> Float[Tensor, "*b _y"]:
        return (grouped(w, w.shape[-1] // self.k) @ grouped(x, self.k)).flatten(-2)


class Identity(nn.Module):
    """y_{k i + j} = 1 if i = j, else 0"""

    matrix: Tensor

    def __init__(self, *, k: int) -> None:
        super().__init__()
        self.register_buffer("matrix", torch.eye(k).flatten(), persistent=False)

    def forward(self, batch: int) -> Float[Tensor, "b _e"]:
        return self.matrix.expand(batch, -1)


class HeadColumns(Weightless):
    """y_{i, h} = x_{h · d / heads + i}"""

    acts_as = "columns"

    heads: int

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b _k _h"]:
        return x.reshape(x.shape[0], self.heads, x.shape[1] // self.heads).transpose(1, 2)


class Constant(nn.Module):
    """y_i = value"""

    zeros: Tensor

    def __init__(self, *, slots: int, d: int, value: float) -> None:
        super().__init__()
        self.value = value
        # A buffer, so that the sum has the device and dtype of the model, in which the value is rounded once.
        self.register_buffer("zeros", torch.zeros(slots, d), persistent=False)

    def forward(self, batch: int) -> Float[Tensor, "b slots d"]:
        return (self.zeros + self.value).expand(batch, -1, -1)


class GroupReduction(Weightless):
    """A reduction of each group of adjacent features."""

    groups: int


class SumFeatures(GroupReduction):
    """y_j = Σ_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).sum(-1)


class MaxFeatures(GroupReduction):
    """y_j = max_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).amax(-1)


class MinFeatures(GroupReduction):
    """y_j = min_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).amin(-1)


class LogsumexpFeatures(GroupReduction):
    """y_j = ln Σ_c exp(x_{j · d / groups + c})"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).logsumexp(-1)


class ProductFeatures(GroupReduction):
    """y_j = Π_c x_{j · d / groups + c}"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        return grouped(x, self.groups).prod(-1)


class LengthFeatures(GroupReduction):
    """y_j = sqrt(Σ_c x_{j · d / groups + c}²)"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b _groups"]:
        lengths: Tensor = torch.linalg.vector_norm(grouped(x, self.groups), dim=-1)
        return lengths


class Concat(nn.Module):
    """y_i = [x1_i; x2_i; …]"""

    acts_as = "joined"

    def forward(self, *xs: Float[Tensor, "*b _d"]) -> Float[Tensor, "*b sum"]:
        return torch.cat(xs, dim=-1)


Function = Callable[[Tensor, Tensor], Tensor]
CONSTANTS = {"zero": 0, "one": 1, "two": 2}
UNARY = {"increment": 1, "decrement": -1}
BINARY: dict[str, Function] = {
    "add": torch.add,
    "subtract": torch.sub,
    "less": torch.lt,
    "less_or_equal": torch.le,
    "equal": torch.eq,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


class IntegerArithmetic(nn.Module):
    """y_c = Σ_{i, j} a_i b_j [f(i, j) = c], modulo m

    Kurach, Andrychowicz, Sutskever, "Neural random-access machines", ICLR 2016."""

    results: Tensor
    unit: Tensor

    def __init__(self, *, operation: str, m: int) -> None:
        super().__init__()
        self.operation = operation
        integers = torch.arange(m)
        if operation in BINARY:
            results = BINARY[operation](integers[:, None], integers).long().flatten() % m
            self.register_buffer("results", results, persistent=False)
        elif operation in CONSTANTS:
            unit = torch.eye(m)[CONSTANTS[operation] % m]
            self.register_buffer("unit", unit, persistent=False)

    def forward(self, a: Float[Tensor, "*b m"], b: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m"]:
        if self.operation in CONSTANTS:
            return self.unit.expand(a.shape)
        if self.operation in UNARY:
            return a.roll(UNARY[self.operation], -1)
        joint = (a[..., :, None] * b[..., None, :]).flatten(-2)
        return torch.zeros_like(a).index_add(-1, self.results, joint)
