"""Types of values: a constructor (`seq`, `vec`, …) and its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import prod

from archlang.types.dimension import Dim


class Axis(Enum):
    """What a size counts; the batch axis is implicit. A LENGTH differs from sample to sample and comes with a mask. A
    FEATURE is fixed when the model is built. A PART is the maximum number of positions of a chunk, or 0 if it is
    unknown before run time."""

    LENGTH = "length"
    FEATURE = "feature"
    PART = "part"


# The axes of each type constructor. A program may omit the last size of `tokens` (the vocabulary, then `vocab`), of
# `map` (the features of each pair, then 1) and of `chunks` (a `seq` cut into parts for `scan`, then 0).
# `pointer[t, n, k]` holds, for each of t steps and k pointers, a weight for each of n slots.
CONSTRUCTORS: Mapping[str, tuple[Axis, ...]] = {
    "tokens": (Axis.LENGTH, Axis.FEATURE),
    "seq": (Axis.LENGTH, Axis.FEATURE),
    "vec": (Axis.FEATURE,),
    "map": (Axis.LENGTH, Axis.LENGTH, Axis.FEATURE),
    "prob": (),
    "probs": (Axis.LENGTH,),
    "address": (Axis.LENGTH, Axis.FEATURE),
    "pointer": (Axis.LENGTH, Axis.LENGTH, Axis.FEATURE),
    "chunks": (Axis.LENGTH, Axis.FEATURE, Axis.PART),
    "number": (),
}

# Types whose values have features that arithmetic and blocks of `data[d]` treat alike.
FEATURED = ("seq", "vec", "map")

# Types that do not mix with data; only `dereference` turns them into data.
ISOLATED = frozenset({"address", "pointer"})


@dataclass(frozen=True)
class Type:
    """A constructor of `CONSTRUCTORS`, with one size for each of its axes."""

    name: str
    dims: tuple[Dim, ...] = ()

    @property
    def axes(self) -> tuple[Axis, ...]:
        return CONSTRUCTORS[self.name]

    @property
    def lengths(self) -> tuple[Dim, ...]:
        """The sizes that count positions, in the order of the axes."""
        return tuple(dim for dim, axis in zip(self.dims, self.axes, strict=True) if axis is Axis.LENGTH)

    @property
    def feature(self) -> Dim | None:
        """The number of features, or None if the type has none."""
        return next((dim for dim, axis in zip(self.dims, self.axes, strict=True) if axis is Axis.FEATURE), None)

    @property
    def tensor_dims(self) -> tuple[Dim, ...]:
        """The sizes of the axes of its tensor, in their order and without the batch. The vocabulary is no axis."""
        if self.name == "tokens":
            return self.dims[:1]
        if self.name == "pointer":
            steps, slots, pointers = self.dims
            return steps, pointers, slots
        return self.dims

    @property
    def count(self) -> Dim:
        """The number of numbers in a value of one sample."""
        return prod(self.tensor_dims if self.part is None else self.tensor_dims[:-1], start=Dim.of(1))

    @property
    def part(self) -> Dim | None:
        """The maximum number of positions of a chunk, or None for other types than `chunks`."""
        return self.dims[-1] if self.axes[-1:] == (Axis.PART,) else None

    def substitute(self, values: Mapping[str, Dim]) -> Type:
        """Returns this type with the names in `values` replaced."""
        return Type(self.name, tuple(dim.substitute(values) for dim in self.dims))

    def broadcast(self, other: Type) -> Type | None:
        """Returns the type of elementwise arithmetic with another type; None if the two do not fit.

        A number fits every type. Otherwise a `vec` is the same at every position of a `seq` and for every pair of a
        `map`, and a feature of size 1 is the same for all features."""
        if self == other or other.name == "number":
            return self
        if self.name == "number":
            return other
        if not {self.name, other.name} <= set(FEATURED):
            return None
        placed = other if self.name == "vec" else self
        if other.name not in (placed.name, "vec") or (other.lengths and other.lengths != placed.lengths):
            return None
        features = {self.dims[-1], other.dims[-1]}
        wide = features - {Dim.of(1)} or features
        return Type(placed.name, (*placed.lengths, *wide)) if len(wide) == 1 else None

    def __str__(self) -> str:
        name = "prob" if self.name == "probs" else self.name
        is_omitted = self.part == Dim.of(0) or (self.name == "map" and self.feature == Dim.of(1))
        dims = self.dims[:-1] if is_omitted else self.dims
        return f"{name}[{', '.join(map(str, dims))}]" if dims else name
