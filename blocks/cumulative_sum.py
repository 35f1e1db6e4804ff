"""Sums of the states so far."""

from jaxtyping import Float
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.block import Mask, Weightless


class CumulativeSum(Weightless):
    """y_i = Σ_{j ≤ i} x_j"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.cumsum(1)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        y = x.cumsum(1) + cache.tensors.get("sum", 0)
        cache.tensors["sum"] = y[:, -1:]
        return y
