"""Elementwise functions, comparisons and selections of numbers."""

from collections.abc import Callable
from math import log

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.kernels.elementwise import NO_REUSE, Reuse, exp, sigmoid, softplus, tanh
from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.backend.runtime.block import MaskN, Weightless


class Elementwise(Weightless):
    """A function of each number."""

    acts_as = "elementwise"


class Relu(Elementwise):
    """max(x, 0)"""

    acts_as = "positive"

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return F.relu(x)

    def derivative(self, y: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (y > 0).to(y.dtype)


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

    function = torch.tanh
    derivative_reads = "result"

    def forward(self, x: Float[Tensor, "*b d"], *, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b d"]:
        return tanh(x, reuse)

    def derivative(self, y: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return 1 - y * y


class Sigmoid(Elementwise):
    """1 / (1 + exp(-x))"""

    function = torch.sigmoid
    derivative_reads = "result"

    def forward(self, x: Float[Tensor, "*b d"], *, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b d"]:
        return sigmoid(x, reuse)

    def derivative(self, y: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return y - y * y


class Softplus(Elementwise):
    """ln(1 + exp(x))"""

    derivative_reads = "arguments"

    def forward(self, x: Float[Tensor, "*b d"], *, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b d"]:
        return softplus(x, reuse)


class Exp(Elementwise):
    """exp(x)"""

    derivative_reads = "result"

    def forward(self, x: Float[Tensor, "*b d"], *, reuse: Reuse = NO_REUSE) -> Float[Tensor, "*b d"]:
        return exp(x, reuse)

    def derivative(self, y: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return y


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


class Greater(Weightless):
    """y = 1 if x > than, else 0"""

    than: float

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (x > self.than).to(x.dtype)


class Equal(nn.Module):
    """y = 1 if x = to, else 0"""

    def __init__(self, *, to: float, d: int) -> None:
        super().__init__()
        self.value = to

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return (x == self.value).to(x.dtype)


class Detach(Weightless):
    """y = x, with ∂y/∂x = 0"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return x.detach()


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


class CopyGate(Weightless):
    """Interpolates each channel of a column between its state and its update by a gate.

        h' = g * u + (1 - g) * h

    NDR (Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022), Eq. 4. In training all gates of a column are
    0 with probability `column_dropout`, which is in the paper's program only."""

    column_dropout: float

    def forward(
        self, g: Float[Tensor, "*b d"], u: Float[Tensor, "*b d"], h: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b d"]:
        if self.training and self.column_dropout > 0:
            closed = torch.rand(g.shape[:-1], device=g.device) < self.column_dropout
            g = g.masked_fill(closed[..., None], 0.0)
        if g.dtype == u.dtype == h.dtype:
            return torch.lerp(h, u, g)  # one pass, and exactly h where g is 0
        return g * u + (1 - g) * h


class Softmax(Weightless):
    """y_c = exp(x_c) / Σ_j exp(x_j), over the features"""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        return masked_softmax(x, None)


class SoftmaxPositions(Weightless):
    """y_i = exp(x_i) / Σ_j exp(x_j), over the real positions; 0 at padding"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b n d"]:
        return masked_softmax(x, None if mask_n is None else mask_n[..., None], 1)


def reduced(
    x: Tensor, allowed: Bool[Tensor, "..."] | None, axis: int, reduce: Callable[[Tensor, int], Tensor], neutral: float
) -> Tensor:
    """Returns a reduction of the allowed entries of an axis, 0 where there are none. `neutral` changes no result."""
    if not x.shape[axis]:
        return x.sum(axis)
    if allowed is None:
        return reduce(x, axis)
    # What has no allowed entries keeps its numbers: the derivative of log-sum-exp is NaN where all are -inf.
    some = allowed.any(axis, keepdim=True)
    return reduce(x.masked_fill(some & ~allowed, neutral), axis).masked_fill(~some.squeeze(axis), 0.0)


def largest(x: Tensor, allowed: Bool[Tensor, "..."] | None, k: int, axis: int) -> Bool[Tensor, "..."]:
    """Returns where the k largest allowed numbers along an axis are; of equal ones, the first.

    Numbers that differ from the k-th largest by rounding are equal to it, so that their order is not chance: by up to
    16 ε of the largest magnitude, except in half precision. They are counted, because ONNX has no stable sort."""
    if allowed is not None:
        x = x.masked_fill(~allowed, -torch.inf)
    # With k numbers of padding, there is always a k-th largest one.
    padding = x.new_full((), -torch.inf).expand(*x.shape[:axis], k, *x.shape[axis:][1:])
    padded = torch.cat((x, padding), axis)
    smallest_chosen = padded.topk(k, axis).values.narrow(axis, k - 1, 1)
    magnitude = padded.abs()
    largest_magnitude = magnitude.masked_fill(~(magnitude < torch.inf), 0).amax(axis, keepdim=True)
    rounding = (16 * torch.finfo(x.dtype).eps if x.element_size() >= 4 else 0) * largest_magnitude
    larger = x > smallest_chosen + rounding
    equal = ~larger & (x >= smallest_chosen - rounding)
    if allowed is not None:
        equal = equal & allowed
    remaining = k - larger.long().sum(axis, keepdim=True)
    return larger | (equal & (equal.long().cumsum(axis) <= remaining))


class TopK(Weightless):
    """y_c = 1 if x_c is among the k largest features, else 0

    Among equal features, the first are chosen.
    With `straight_through`, ∂y/∂x is the identity, as in Bengio, Léonard, Courville, "Estimating or propagating
    gradients through stochastic neurons", 2013."""

    k: int
    straight_through: bool

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        y = largest(x.detach(), None, self.k, -1).to(x.dtype)
        # x - x is 0 also in rounding, unlike y - x + x.
        return y + (x - x.detach()) if self.straight_through else y


class TopKPositions(Weightless):
    """y_i = 1 if x_i is among the k largest of its feature, else 0"""

    k: int

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b n d"]:
        return largest(x.detach(), None if mask_n is None else mask_n[..., None], self.k, 1).to(x.dtype)
