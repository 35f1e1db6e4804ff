"""Linear maps of one value, computed as one product. The pass `join` finds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeGuard

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.loops import Attached, resolve
from archlang.backend.runtime.padded_division import real_only

# The products of a block's own linear maps with its arguments, by the names of the maps. None: the block computes it.
Products = Mapping[str, Tensor | None]
NO_PRODUCTS: Products = MappingProxyType({})
# The most multiplications for which one product is faster than several on a CPU. With more, each product alone uses the
# CPU fully, and splitting the result costs more than separate calls do.
_MOST_MULTIPLICATIONS = 3 << 23


def is_joinable(module: object) -> TypeGuard[nn.Linear]:
    """Returns whether a module is exactly torch's linear map, so that its product may be computed beside others."""
    return type(module) is nn.Linear


def mapped(
    linear: nn.Linear, name: str, x: Float[Tensor, "*b d"], products: Products, mask: Bool[Tensor, "b _n"] | None = None
) -> Float[Tensor, "*b k"]:
    """Returns the product of a name, or computes `linear(x)` if there is none. A mask removes what is at padding."""
    product = products.get(name)
    result: Tensor = linear(real_only(x, mask)) if product is None else real_only(product, mask)
    return result


JoinedWeights = dict[bool, tuple[Tensor, Tensor | None]]
"""The concatenated weight [k d] and bias [k] of joined maps, filled when they are first needed in a call of the model;
those that were computed with gradients enabled are at True. Each call has its own: weights may have changed since the
last one, and gradients flow through them. (A dictionary, because loops treat tensors, also those in tuples, as values
of the batch.)"""


@dataclass(eq=False)
class JoinedLinear(Attached):
    """Computes the linear maps at `paths` of one value, in one product if that is faster. `sizes` are the widths of
    their products."""

    owner: nn.Module = field(repr=False)
    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        self._words = tuple(path.split(".") for path in self.paths)
        self._rows = sum(self.sizes)
        self._no_products = (None,) * len(self.sizes)

    def _maps(self) -> list[nn.Module]:
        """The maps. They are looked up at each call, because a wrapper may replace one."""
        maps: list[nn.Module] = [resolve(self.owner, words) for words in self._words]
        return maps

    def weights(self) -> JoinedWeights | None:
        """Returns the weights for one call of the model, still empty; the steps of loops share them. Returns None if
        the maps must be called themselves: one was replaced, or has hooks, or the model is exported, whose loops cannot
        fill a dictionary outside of them."""
        if is_exporting():
            return None
        maps = self._maps()
        joinable = [linear for linear in maps if is_joinable(linear) and not _has_hooks(linear)]
        alike = len({(linear.weight.dtype, linear.weight.device) for linear in joinable}) == 1
        return {} if len(joinable) == len(maps) and alike else None

    def __call__(self, x: Float[Tensor, "*b d"], weights: JoinedWeights | None) -> Sequence[Tensor | None]:
        """Returns the product of each map, or None for each if separate products are as fast."""
        if weights is None or not _is_faster(x, self._rows):
            return self._no_products
        maps = [linear for linear in self._maps() if is_joinable(linear)]
        has_gradients = torch.is_grad_enabled()
        if has_gradients not in weights:
            weights[has_gradients] = _concatenate(maps)
        return torch.split(F.linear(x, *weights[has_gradients]), list(self.sizes), -1)

    def all_products(self, x: Float[Tensor, "*b d"], weights: JoinedWeights | None) -> Sequence[Tensor]:
        """Returns the product of each map. The steps of a loop share them."""
        products = self(x, weights)
        return [
            linear(x) if product is None else product for linear, product in zip(self._maps(), products, strict=True)
        ]


def _is_faster(x: Tensor, rows: int) -> bool:
    return x.device.type != "cpu" or x.numel() * rows <= _MOST_MULTIPLICATIONS


def _concatenate(maps: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    weight = torch.cat([linear.weight for linear in maps])
    bias = torch.cat([_bias(linear) for linear in maps]) if any(linear.bias is not None for linear in maps) else None
    device = weight.device.type
    if torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device):  # once, not in each step
        dtype = torch.get_autocast_dtype(device)
        weight, bias = weight.to(dtype), None if bias is None else bias.to(dtype)
    return weight, bias


def _has_hooks(module: nn.Module) -> bool:
    """Whether a call of the module runs hooks. torch has no public way to ask."""
    return bool(
        module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks
    )


def _bias(linear: nn.Linear) -> Float[Tensor, " k"]:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
