"""What a value is: a constructor (`seq`, `vec`, …) and its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from archlang.types.dimension import Dim


class Axis(Enum):
    """What a size counts. The batch is implicit. A length differs from sample to sample and comes with a mask; a
    feature is fixed when the model is built."""

    LENGTH = "length"
    FEATURE = "feature"


# Every type constructor of the language with its axes. `chunks` is a `seq` cut into parts for `scan`. The last
# feature of `tokens`, the size of the vocabulary, may be left out in a program: then it is `vocab`. `pointer[t, n, k]`
# says for each of t steps, and each of k pointers, how much it points at each of n slots.
CONSTRUCTORS: Mapping[str, tuple[Axis, ...]] = {
    "tokens": (Axis.LENGTH, Axis.FEATURE),
    "seq": (Axis.LENGTH, Axis.FEATURE),
    "vec": (Axis.FEATURE,),
    "map": (Axis.LENGTH, Axis.LENGTH),
    "prob": (),
    "probs": (Axis.LENGTH,),
    "address": (Axis.LENGTH, Axis.FEATURE),
    "pointer": (Axis.LENGTH, Axis.LENGTH, Axis.FEATURE),
    "chunks": (Axis.LENGTH, Axis.FEATURE),
    "number": (),
}

# What is no data, and becomes none but by `dereference`.
ISOLATED = frozenset({"address", "pointer"})


@dataclass(frozen=True)
class Type:
    """A constructor of `CONSTRUCTORS` and one size for each of its axes."""

    name: str
    dims: tuple[Dim, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        return CONSTRUCTORS[self.name]

    @property
    def lengths(self) -> tuple[Dim, ...]:
        """The sizes that count positions, in order."""
        return tuple(dim for dim, axis in zip(self.dims, self.axes, strict=True) if axis is Axis.LENGTH)

    @property
    def feature(self) -> Dim | None:
        """The size of the last axis, where that is a feature."""
        return self.dims[-1] if self.dims and self.axes[-1] is Axis.FEATURE else None

    def substitute(self, values: Mapping[str, Dim]) -> Type:
        return Type(self.name, tuple(dim.substitute(values) for dim in self.dims))

    def __str__(self) -> str:
        name = "prob" if self.name == "probs" else self.name
        return f"{name}[{', '.join(map(str, self.dims))}]" if self.dims else name
