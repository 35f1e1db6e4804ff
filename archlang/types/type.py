"""What a value is: a constructor (`seq`, `vec`, …) and its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from archlang.types.dimension import Dim


class Axis(Enum):
    """What a size counts. The batch is implicit. A length differs from sample to sample and comes with a mask; a
    feature is fixed when the model is built. A part is how many positions a chunk has at most, 0 if that is not known
    before run time."""

    LENGTH = "length"
    FEATURE = "feature"
    PART = "part"


# Every type constructor of the language with its axes. The last size of two may be left out in a program: that of
# `tokens`, the vocabulary, is `vocab` then, and that of `chunks`, a `seq` cut into parts for `scan`, is 0.
# `pointer[t, n, k]` says for each of t steps, and each of k pointers, how much it points at each of n slots.
CONSTRUCTORS: Mapping[str, tuple[Axis, ...]] = {
    "tokens": (Axis.LENGTH, Axis.FEATURE),
    "seq": (Axis.LENGTH, Axis.FEATURE),
    "vec": (Axis.FEATURE,),
    "map": (Axis.LENGTH, Axis.LENGTH),
    "prob": (),
    "probs": (Axis.LENGTH,),
    "address": (Axis.LENGTH, Axis.FEATURE),
    "pointer": (Axis.LENGTH, Axis.LENGTH, Axis.FEATURE),
    "chunks": (Axis.LENGTH, Axis.FEATURE, Axis.PART),
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
        """The number of features, if it has any."""
        return next((dim for dim, axis in zip(self.dims, self.axes, strict=True) if axis is Axis.FEATURE), None)

    @property
    def part(self) -> Dim | None:
        """How many positions each chunk has at most, of chunks."""
        return self.dims[-1] if self.axes[-1:] == (Axis.PART,) else None

    def substitute(self, values: Mapping[str, Dim]) -> Type:
        return Type(self.name, tuple(dim.substitute(values) for dim in self.dims))

    def __str__(self) -> str:
        name = "prob" if self.name == "probs" else self.name
        dims = self.dims[:-1] if self.part == Dim.of(0) else self.dims
        return f"{name}[{', '.join(map(str, dims))}]" if dims else name
