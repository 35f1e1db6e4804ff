"""Rotary position encoding."""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.blocks.attention import join_heads, rotate, split_heads
from archlang.blocks.positions import counted


class Rotary(nn.Module):
    """Rotates the pair of features (2c, 2c+1) of a head at position i by the angle i base^(-2c / width of a head).

    Su et al., "RoFormer", 2021, Eq. 34."""

    def __init__(self, *, heads: int, base: float, d: int) -> None:
        super().__init__()
        self.heads = heads
        self.base = base

    def _rotated(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        return join_heads(rotate(split_heads(x, self.heads), counted(x.shape[1], x, start), self.base))

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return self._rotated(x, 0)

    def extend(
        self, cache: BlockCache, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n d"]:
        return self._rotated(x, cache.start)
