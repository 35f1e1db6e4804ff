"""The largest features, and the positions of the largest numbers."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


def largest(x: Tensor, allowed: Bool[Tensor, "..."] | None, k: int, axis: int) -> Bool[Tensor, "..."]:
    """Returns where the k largest allowed numbers along an axis are; of equal ones, the first.

    Numbers that differ from the k-th largest by rounding are equal to it, so that their order is not chance: by up to
    16 ε of the largest magnitude, except in half precision. They are counted, because ONNX has no stable sort."""
    if allowed is not None:
        x = x.masked_fill(~allowed, -torch.inf)
    # With k numbers of padding, there is always a k-th largest one.
    padding = x.new_full((), -torch.inf).expand(*x.shape[:axis], k, *x.shape[axis:][1:])
    padded = torch.cat((x, padding), axis)
    smallest_chosen = padded.sort(axis, descending=True).values.narrow(axis, k - 1, 1)
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

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return largest(x.detach(), None if mask_n is None else mask_n[..., None], self.k, 1).to(x.dtype)
