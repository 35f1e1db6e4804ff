"""Linear maps of a block's arguments, which are computed before a loop that does not change them."""

from collections.abc import Mapping
from types import MappingProxyType

from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.runtime.block import real_only

# The products of a block's own linear maps with its arguments, by the names of the maps.
Products = Mapping[str, Tensor]
NO_PRODUCTS: Products = MappingProxyType({})


def mapped(
    linear: nn.Linear, name: str, x: Float[Tensor, "*b d"], products: Products, mask: Bool[Tensor, "b _n"] | None = None
) -> Float[Tensor, "*b k"]:
    """Returns the product of a name, or computes `linear(x)` if there is none. A mask removes what is at padding."""
    if name in products:
        return real_only(products[name], mask)
    result: Tensor = linear(real_only(x, mask))
    return result
