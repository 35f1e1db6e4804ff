"""Linear maps of one value as one product. The pass `join` finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.loops import find

# What a block is given of what its own linear maps make of its arguments, by the names of the maps.
Products = Mapping[str, Tensor]
NO_PRODUCTS: Products = MappingProxyType({})
# Multiplications up to which one product is faster than several on a CPU. With more, each keeps it busy by itself, and
# to take the results apart costs more than calls do.
_MOST = 1 << 26


class Joinable(nn.Linear):
    """A linear map that can be joined with others of its class, by laying their weights below each other."""

    @staticmethod
    def product(
        x: Float[Tensor, "*b d"], weight: Float[Tensor, "k d"], bias: Float[Tensor, " k"] | None
    ) -> Float[Tensor, "*b k"]:
        """x Wᵀ + b"""
        raise NotImplementedError


def mapped(linear: nn.Linear, name: str, x: Float[Tensor, "*b d"], products: Products) -> Float[Tensor, "*b k"]:
    """What a map makes of x: the product of its name, or computed now."""
    result: Tensor = products[name] if name in products else linear(x)
    return result


@dataclass(frozen=True, eq=False)
class Joined:
    """The weights of several maps below each other, for one pass through a model. Each pass makes its own: weights may
    have changed since the last one, and gradients find their way."""

    weight: Float[Tensor, "k d"]
    bias: Float[Tensor, " k"] | None
    sizes: tuple[int, ...]


@dataclass(eq=False)
class Join:
    """Computes linear maps of one value, in one product where that is faster. The steps of loops share what `weights`
    gives."""

    owner: nn.Module = field(repr=False)
    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        self._words = tuple(path.split(".") for path in self.paths)

    def _maps(self) -> list[nn.Module]:
        """Looked up each time, as a wrapper may have taken the place of one."""
        maps: list[nn.Module] = [find(self.owner, words) for words in self._words]
        return maps

    def weights(self) -> Joined | None:
        """None where a map must be called itself: it is none of ours any more, or somebody listens to it."""
        maps = self._maps()
        linear = [
            one for one in maps if isinstance(one, Joinable) and type(one) is type(maps[0]) and not _is_heard(one)
        ]
        weights = [one.weight for one in linear]
        if len(linear) < len(maps) or len({(one.dtype, one.device) for one in weights}) > 1:
            return None
        weight = torch.cat(weights)
        bias = torch.cat([_bias(one) for one in linear]) if any(one.bias is not None for one in linear) else None
        kind = weight.device.type
        if torch.is_autocast_enabled(kind):  # once, not in each step
            low = torch.get_autocast_dtype(kind)
            weight, bias = weight.to(low), None if bias is None else bias.to(low)
        return Joined(weight, bias, tuple(one.out_features for one in linear))

    def __call__(self, x: Float[Tensor, "*b d"], joined: Joined | None) -> Sequence[Tensor]:
        maps = self._maps()
        first = maps[0]
        if joined is None or not isinstance(first, Joinable) or not _is_worth_it(x, joined):
            return [one(x) for one in maps]
        return torch.split(first.product(x, joined.weight, joined.bias), list(joined.sizes), -1)


def _is_worth_it(x: Tensor, joined: Joined) -> bool:
    return x.device.type != "cpu" or x.numel() * len(joined.weight) <= _MOST


def _is_heard(part: nn.Module) -> bool:
    return bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)


def _bias(linear: nn.Linear) -> Float[Tensor, " k"]:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
