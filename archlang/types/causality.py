"""Horizons: how far into an input a position of a value may depend on it. docs/semantics.md has the rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Reach(Enum):
    """How far a horizon reaches. BEFORE, START and WITHIN number the enclosing scans, from outside; WITHIN 0 is all."""

    NOTHING = "nothing"
    BEFORE = "before"
    START = "start"
    POINTWISE = "pointwise"
    CAUSAL = "causal"
    MIRRORED = "mirrored"
    WITHIN = "within"


# Horizons that a position of the value itself bounds, in the innermost chunk.
_OWN = (Reach.POINTWISE, Reach.CAUSAL, Reach.MIRRORED)


@dataclass(frozen=True)
class Horizon:
    """An upper bound of what position i of a value depends on; `scan` is the number of the scan that it refers to."""

    reach: Reach
    scan: int = 0

    @property
    def sees_future(self) -> bool:
        """Whether position i of a model's result may depend on a position after i."""
        return self.reach in (Reach.MIRRORED, Reach.WITHIN)

    @property
    def is_of_position(self) -> bool:
        """Whether it is bounded by the position itself."""
        return self.reach in _OWN

    def join(self, other: Horizon, depth: int) -> Horizon:
        """The least horizon that covers both, in a region that `depth` scans enclose."""
        if self == other or other == NOTHING:
            return self
        if self == NOTHING:
            return other
        reaches = {self.reach, other.reach}
        if Reach.WITHIN in reaches:
            return within(min(one.scan for one in (self, other) if one.reach is Reach.WITHIN))
        if Reach.MIRRORED in reaches:
            return within(depth)
        if reaches & {Reach.POINTWISE, Reach.CAUSAL}:
            return CAUSAL
        reach = Reach.START if Reach.START in reaches else Reach.BEFORE
        return Horizon(reach, max(self.scan, other.scan))

    def read(self, manner: Manner, depth: int) -> Horizon:
        """The horizon of what a block makes of a value that it reads in this manner."""
        if manner is Manner.LENGTH:
            return NOTHING
        if not self.is_of_position or manner is Manner.POINTWISE:
            return self
        mirrored = self.reach is Reach.MIRRORED
        match manner:
            case Manner.CAUSAL:
                return within(depth) if mirrored else CAUSAL
            case Manner.FIRST:
                return within(depth) if mirrored else Horizon(Reach.START, depth)
            case Manner.MIRRORED:
                return CAUSAL if mirrored else MIRRORED
        return within(depth)

    # Into the body of a scan that `depth` scans enclose, and out of it

    def enter(self, depth: int) -> Horizon:
        """The horizon, in the body, of a value from outside: its positions are not those of the chunk."""
        return within(depth) if self.is_of_position else self

    def cut(self, depth: int) -> Horizon:
        """The horizon of a chunk of this value: its positions are the value's."""
        return within(depth) if self.reach is Reach.MIRRORED else self

    def next_chunk(self, depth: int) -> Horizon:
        """The horizon, in the next chunk, of a state that was moved in this one."""
        return Horizon(Reach.BEFORE, depth + 1) if self._is_of_chunk(depth) else self

    def joined(self, depth: int, one_position: bool) -> Horizon:
        """The horizon of the joined chunks; `one_position` says that each chunk has a single position."""
        if not self._is_of_chunk(depth) or self.reach is Reach.POINTWISE:
            return self
        ahead = self.reach in (Reach.MIRRORED, Reach.WITHIN)
        return within(depth) if ahead and not one_position else CAUSAL

    def last(self, depth: int) -> Horizon:
        """The horizon of a carried state after the scan."""
        return within(depth) if self._is_of_chunk(depth) else self

    def _is_of_chunk(self, depth: int) -> bool:
        """Whether it is bounded by the chunk at hand of the scan in whose body it stands."""
        return self.is_of_position or (self.reach is not Reach.NOTHING and self.scan == depth + 1)

    def __str__(self) -> str:
        counted = self.reach in (Reach.BEFORE, Reach.START, Reach.WITHIN)
        return f"{self.reach.value} {self.scan}" if counted else self.reach.value


NOTHING = Horizon(Reach.NOTHING)
POINTWISE = Horizon(Reach.POINTWISE)
CAUSAL = Horizon(Reach.CAUSAL)
MIRRORED = Horizon(Reach.MIRRORED)


def within(scan: int) -> Horizon:
    """Everything up to the end of the chunk at hand of a scan; everything for 0."""
    return Horizon(Reach.WITHIN, scan)


def join_all(horizons: Iterable[Horizon], depth: int) -> Horizon:
    """The least horizon that covers all of them."""
    total = NOTHING
    for horizon in horizons:
        total = total.join(horizon, depth)
    return total


class Manner(Enum):
    """What position i of a block's result reads of an input: nothing but its length, position i, the positions up to i,
    position 0, position n - 1 - i of n, or all."""

    LENGTH = "length"
    POINTWISE = "pointwise"
    CAUSAL = "causal"
    FIRST = "first"
    MIRRORED = "mirrored"
    FULL = "full"


MANNERS = tuple(manner.value for manner in Manner)
