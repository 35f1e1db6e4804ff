"""Linear maps of one value as one product. The pass `join` finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.loops import find

# What a block is given of what its own linear maps make of its arguments, by the names of the maps: None where the
# block had better compute it itself.
Products = Mapping[str, Tensor | None]
NO_PRODUCTS: Products = MappingProxyType({})
# Multiplications up to which one product is faster than several on a CPU. With more, each keeps it busy by itself, and
# to take the results apart costs more than calls do.
_MOST = 3 << 23


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
    known = products.get(name)
    result: Tensor = linear(x) if known is None else known
    return result


Joined = dict[str, Tensor | None]
"""What one pass through a model keeps of a join: once it is needed, the `weight` of the maps below each other, [k d],
and their `bias`, [k]. Each pass makes its own: weights may have changed since the last one, and gradients find their
way. (A dictionary, as loops take tensors, also those in tuples, for values of the batch.)"""


@dataclass(eq=False)
class Join:
    """Computes linear maps of one value, in one product where that is faster. `sizes` are the widths of their products.
    The steps of loops share what `weights` gives."""

    owner: nn.Module = field(repr=False)
    paths: tuple[str, ...]
    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        self._words = tuple(path.split(".") for path in self.paths)
        self._rows = sum(self.sizes)
        self._none = (None,) * len(self.sizes)

    def _maps(self) -> list[nn.Module]:
        """Looked up each time, as a wrapper may have taken the place of one."""
        maps: list[nn.Module] = [find(self.owner, words) for words in self._words]
        return maps

    def weights(self) -> Joined | None:
        """For one pass; None where a map must be called itself: it is none of ours any more, or somebody listens."""
        maps = self._maps()
        ours = [one for one in maps if isinstance(one, Joinable) and type(one) is type(maps[0]) and not _is_heard(one)]
        alike = len({(one.weight.dtype, one.weight.device) for one in ours}) == 1
        return {} if len(ours) == len(maps) and alike else None

    def __call__(self, x: Float[Tensor, "*b d"], joined: Joined | None) -> Sequence[Tensor | None]:
        """The products, or None for each where their blocks are as fast."""
        if joined is None or not _is_worth_it(x, self._rows):
            return self._none
        maps = [one for one in self._maps() if isinstance(one, Joinable)]
        if not joined:
            joined.update(_below_each_other(maps))
        weight = joined["weight"]
        assert weight is not None
        return torch.split(maps[0].product(x, weight, joined["bias"]), list(self.sizes), -1)

    def ahead(self, x: Float[Tensor, "*b d"], joined: Joined | None) -> Sequence[Tensor]:
        """The products in any case: they are for all steps of a loop."""
        found = self(x, joined)
        return [one(x) if known is None else known for one, known in zip(self._maps(), found, strict=True)]


def _is_worth_it(x: Tensor, rows: int) -> bool:
    return x.device.type != "cpu" or x.numel() * rows <= _MOST


def _below_each_other(maps: Sequence[Joinable]) -> Joined:
    weight = torch.cat([one.weight for one in maps])
    bias = torch.cat([_bias(one) for one in maps]) if any(one.bias is not None for one in maps) else None
    kind = weight.device.type
    if torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind):  # once, not in each step
        low = torch.get_autocast_dtype(kind)
        weight, bias = weight.to(low), None if bias is None else bias.to(low)
    return {"weight": weight, "bias": bias}


def _is_heard(part: nn.Module) -> bool:
    return bool(part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks)


def _bias(linear: nn.Linear) -> Float[Tensor, " k"]:
    return linear.weight.new_zeros(linear.out_features) if linear.bias is None else linear.bias
