"""Rotary position encoding of a sequence, outside of an attention block."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.padded_division import Mask
from archlang.blocks.positions import counted


class RotaryPositions(nn.Module):
    """Rotates pairs of features by an angle that grows with the position.

        y_c       = x_c cos(a) - x_{c + r/2} sin(a)
        y_{c+r/2} = x_{c + r/2} cos(a) + x_c sin(a),    a = (start + i) first base^(-2c/r)

    for the first r = `rotated` features of each head, or all if it is 0; the others stay.

    Su et al., "RoFormer", 2021; the pairs are those of GPT-NeoX."""

    def __init__(self, *, heads: int, rotated: int, start: int, first: float, base: float, d: int) -> None:
        super().__init__()
        self.heads = heads
        self.size = d // heads
        self.rotated = rotated or self.size
        self.start = start
        self.first = first
        self.base = base

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._rotated(x, self.start)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._rotated(x, self.start + cache.start)

    def _rotated(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        half = self.rotated // 2
        places = counted(x.shape[1], x, start)
        frequency = self.first * self.base ** (-torch.arange(half, dtype=places.dtype, device=x.device) / half)
        angle = (places[:, None] * frequency)[:, None]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        heads = x.reshape(*x.shape[:2], self.heads, self.size)
        left, right, rest = heads[..., :half], heads[..., half : 2 * half], heads[..., 2 * half :]
        return torch.cat((left * cos - right * sin, right * cos + left * sin, rest), -1).flatten(2)
