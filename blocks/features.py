"""Selects, repeats and arranges features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.blocks.weightless import Weightless


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
