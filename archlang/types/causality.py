"""Horizons: which positions of an input a position of a value may depend on. docs/semantics.md states the rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from fractions import Fraction


class Reach(Enum):
    """How far a horizon reaches. BEFORE, START and WITHIN refer to an enclosing scan by its number, counted from the
    outermost as 1; WITHIN 0 is the whole input."""

    NOTHING = "nothing"
    BEFORE = "before"
    START = "start"
    POINTWISE = "pointwise"
    CAUSAL = "causal"
    PAIRED = "paired"
    MIRRORED = "mirrored"
    WITHIN = "within"


# Horizons relative to the position of the value itself, in the innermost chunk.
_OWN = (Reach.POINTWISE, Reach.CAUSAL, Reach.PAIRED, Reach.MIRRORED)


@dataclass(frozen=True)
class Horizon:
    """An upper bound of the positions that position i of a value depends on; `scan` is the number of a scan.

    The positions of a map are its rows. Only a map can be PAIRED: entry (i, j) depends on the positions up to i or j,
    whichever is later. Where groups of positions have become one, or one has become several, CAUSAL and PAIRED have a
    `rate`: position i depends on the positions up to ⌈(i + 1) rate⌉ - 1."""

    reach: Reach
    scan: int = 0
    rate: Fraction | int = 1

    @property
    def sees_future(self) -> bool:
        """Whether position i of a model's result may depend on a position after i."""
        return self.rate > 1 or self.reach in (Reach.PAIRED, Reach.MIRRORED, Reach.WITHIN)

    @property
    def is_of_position(self) -> bool:
        """Whether the horizon is relative to the position itself."""
        return self.reach in _OWN

    def join(self, other: Horizon, depth: int) -> Horizon:
        """Returns the smallest horizon that covers both, in a region inside `depth` scans."""
        if self == other or other == NOTHING:
            return self
        if self == NOTHING:
            return other
        reaches = {self.reach, other.reach}
        if Reach.WITHIN in reaches:
            return within(min(horizon.scan for horizon in (self, other) if horizon.reach is Reach.WITHIN))
        if Reach.MIRRORED in reaches:
            return within(depth)
        if reaches & {Reach.POINTWISE, Reach.CAUSAL, Reach.PAIRED}:
            reach = Reach.PAIRED if Reach.PAIRED in reaches else Reach.CAUSAL
            return Horizon(reach, rate=max(self.rate, other.rate))
        reach = Reach.START if Reach.START in reaches else Reach.BEFORE
        return Horizon(reach, max(self.scan, other.scan))

    def read(self, manner: Manner, depth: int, count: int = 1) -> Horizon:
        """Returns the horizon of a block's result, if the block reads a value of this horizon in a manner. `count` is
        the size of the groups of GROUPED, SPLIT and HELD."""
        if manner is Manner.LENGTH:
            return NOTHING
        if not self.is_of_position or manner is Manner.POINTWISE:
            return self
        mirrored, paired = self.reach is Reach.MIRRORED, self.reach is Reach.PAIRED
        match manner:
            case Manner.ROW if not paired:
                return self
            # Entry (i, j) of a paired map depends on the positions up to i or j, as those before it in its row do.
            case Manner.PREFIX:
                return self
            case Manner.TRANSPOSED if not mirrored:
                return replace(self, reach=Reach.PAIRED)
            case Manner.TRIANGULAR if not mirrored:
                return replace(self, reach=Reach.CAUSAL)
            case Manner.CAUSAL if paired:
                return self
            case _ if paired:
                return within(depth)
            case Manner.MIRRORED if mirrored:
                return CAUSAL
            case _ if mirrored:
                return within(depth)
            case Manner.CAUSAL:
                return replace(self, reach=Reach.CAUSAL)
            case Manner.GROUPED:
                return Horizon(Reach.CAUSAL, rate=self.rate * count)
            # ⌈⌈x⌉ rate⌉ is ⌈x rate⌉ only for such rates.
            case Manner.SPLIT if self.rate.numerator == 1:
                return Horizon(Reach.CAUSAL, rate=Fraction(self.rate) / count)
            case Manner.HELD:
                return Horizon(Reach.CAUSAL, rate=Fraction(self.rate) / count)
            case Manner.FIRST if self.rate <= 1:
                return Horizon(Reach.START, depth)
            case Manner.MIRRORED if self.rate <= 1:
                return MIRRORED
        return within(depth)

    # Into and out of the body of a scan that is inside `depth` scans

    def enter(self, depth: int) -> Horizon:
        """Returns the horizon, in the body, of a value from outside, whose positions differ from the chunk's."""
        return within(depth) if self.is_of_position else self

    def cut(self, depth: int) -> Horizon:
        """Returns the horizon of a chunk of this value, which is no map, and whose positions are the value's. What it
        computes has the rate of the value, which `scaled` returns to what is joined."""
        return within(depth) if self.reach is Reach.MIRRORED else replace(self, rate=1)

    def next_chunk(self, depth: int) -> Horizon:
        """Returns the horizon, in the next chunk, of a state that is updated in this one."""
        return Horizon(Reach.BEFORE, depth + 1) if self._is_of_chunk(depth) else self

    def joined(self, depth: int, single_positions: bool) -> Horizon:
        """Returns the horizon of the joined chunks; `single_positions`: each chunk has one position."""
        if not self._is_of_chunk(depth) or self.reach is Reach.POINTWISE:
            return self
        sees_later = self.sees_future and self.reach is not Reach.PAIRED
        return within(depth) if sees_later and not single_positions else CAUSAL

    def scaled(self, rate: Fraction | int) -> Horizon:
        """Returns the horizon of a value whose positions are those of a value with this rate."""
        if rate == 1 or not self.is_of_position:
            return self
        return Horizon(Reach.CAUSAL, rate=rate) if self.reach is Reach.POINTWISE else replace(self, rate=rate)

    def last(self, depth: int) -> Horizon:
        """Returns the horizon of a carried state after the scan."""
        return within(depth) if self._is_of_chunk(depth) else self

    def _is_of_chunk(self, depth: int) -> bool:
        return self.is_of_position or (self.reach is not Reach.NOTHING and self.scan == depth + 1)

    def __str__(self) -> str:
        counted = self.reach in (Reach.BEFORE, Reach.START, Reach.WITHIN)
        number = str(self.scan) if counted else "" if self.rate == 1 else str(self.rate)
        return f"{self.reach.value} {number}".rstrip()


NOTHING = Horizon(Reach.NOTHING)
POINTWISE = Horizon(Reach.POINTWISE)
CAUSAL = Horizon(Reach.CAUSAL)
PAIRED = Horizon(Reach.PAIRED)
MIRRORED = Horizon(Reach.MIRRORED)


def within(scan: int) -> Horizon:
    """Returns the horizon up to the end of the current chunk of a scan, or of the whole input for 0."""
    return Horizon(Reach.WITHIN, scan)


def join_all(horizons: Iterable[Horizon], depth: int) -> Horizon:
    """Returns the smallest horizon that covers all of them, in a region inside `depth` scans."""
    union = NOTHING
    for horizon in horizons:
        union = union.join(horizon, depth)
    return union


class Manner(Enum):
    """The positions of an input that position i of a block's result reads: none (only the length), position i, the
    positions up to i, position 0, position n - 1 - i of n, or all.

    An entry (i, j) of a map reads, of a map: entry (i, j) if POINTWISE, the entries (i', j') with i' ≤ i and j' ≤ j if
    CAUSAL, entry (j, i) if TRANSPOSED, row i if ROW, the entries (i, j') with j' ≤ j if PREFIX, and the entries
    (i', j') with i' ≤ i and j' ≤ i if TRIANGULAR; of a sequence: position j if TRANSPOSED, the positions up to i if
    PREFIX, else as position i does. Position i of a result that is no map reads the columns of a map that any entry of
    row i reads.

    Of groups of k positions, position i reads those up to the end of group i if GROUPED, position ⌊i / k⌋ if SPLIT, and
    the positions up to ⌊(i + 1) / k⌋ - 1 if HELD."""

    LENGTH = "length"
    POINTWISE = "pointwise"
    CAUSAL = "causal"
    FIRST = "first"
    MIRRORED = "mirrored"
    FULL = "full"
    TRANSPOSED = "transposed"
    ROW = "row"
    PREFIX = "prefix"
    TRIANGULAR = "triangular"
    GROUPED = "grouped"
    SPLIT = "split"
    HELD = "held"


MANNERS = tuple(manner.value for manner in Manner)
COUNTED = ("grouped", "split", "held")
"""the manners with a size of groups, as in `grouped[4]`, which an instance keeps as `grouped.4`"""


def manner_of(text: str) -> tuple[Manner, int]:
    """Returns a manner that an instance keeps, and the size of its groups."""
    name, _, count = text.partition(".")
    return Manner(name), int(count or 1)
