"""Dyck: predict which brackets may come next in a string of nested brackets.

Suzgun et al. (2019), as in Pointer-Augmented Neural Memory (Le et al., 2024, section 3.2).

>>> task = Dyck(train_size=9, train=Interval(8, 12))
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0])
'[ ( ( ) ( ( ) ) ) ]'
>>> [task.spell(np.flatnonzero(allowed)) for allowed in train.targets[0]]
['( [ ]', '( ) [', '( ) [', '( ) [', '( ) [', '( ) [', '( ) [', '( ) [', '( [ ]', '( [']
>>> task.spell(train.inputs["x"][1])
'[ ] ( ( ) ( ) [ ] )'
>>> [task.spell(np.flatnonzero(allowed)) for allowed in train.targets[1]]
['( [ ]', '( [', '( ) [', '( ) [', '( ) [', '( ) [', '( ) [', '( [ ]', '( ) [', '( [']
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import Drawing, RandomStream, fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, join, offsets_of
from archlang.tasks.kit.task import Kind, LossRule, ShippedTask
from archlang.types.statics import Interval

PAIRS = ("()", "[]", "{}", "<>", "+-", "ab", "xo")
# Validation strings have the lengths of the train set; fingerprints keep distinct strings apart.
SHARES = {"train": (1 / 16, 1.0), "valid": (0.0, 1 / 16), "test": (0.0, 1.0)}
_BATCH = 1 << 12
_WINDOW = 100
_EMPTY, _NESTED, _TWO = range(3)


class Dyck(ShippedTask):
    pairs: int
    p: float
    q: float
    test: tuple[Interval, ...]
    distinct: bool
    loss: str

    disjoint = ("train", "test")
    kind = Kind.SETS
    breakdown = "length"

    def check(self) -> None:
        for lengths in self.test:
            if not isinstance(lengths, Interval):
                raise mistakes.not_of_kind("test", lengths, "range such as 52..100")
        self.check_even(("train", "test"))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple("".join(PAIRS[: self.pairs]))

    @property
    def rule(self) -> LossRule:
        return LossRule(self.loss)

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"length": [lengths.low for lengths in (self.test if split == "test" else (self.train,))]}

    def make(self, split: str, seed: int) -> Split:
        ranges, size = self.test if split == "test" else (self.train,), self.size(split)
        parts = [self._draw(split, lengths, size, seed) for lengths in ranges]
        x = join(parts)
        lows = np.repeat(np.asarray([lengths.low for lengths in ranges], dtype=np.int64), size)
        return Split({"x": x}, Ragged(allowed(x, self.pairs), x.offsets), groups={"length": lows})

    def _draw(self, split: str, lengths: Interval, size: int, seed: int) -> Ragged:
        """Draws strings of these lengths, distinct ones if `distinct`."""
        rng = RandomStream("dyck", self.pairs, split, lengths.low, lengths.high, seed)
        remedy, share = "allow longer strings, or `distinct = false`", SHARES[split]
        search = Drawing(self.name, f"{split}_size", size, remedy, share=share, window=_WINDOW)
        parts: list[Ragged] = []
        while search.missing:
            drawn = strings(rng, _BATCH, self.pairs, self.p, self.q, lengths)
            # If strings may repeat, a share would exclude the likeliest strings from a split.
            fresh = search.fresh(fingerprints(drawn)) if self.distinct else np.ones(len(drawn), dtype=np.bool_)
            parts.append(drawn.select(np.flatnonzero(fresh)[: search.missing]))
            search.take(len(parts[-1]))
        return join(parts)


@dataclass(frozen=True, eq=False)
class _Level:
    """The N symbols S at one distance from the root, in the order of their parents: the rule of each [N], its bracket
    [N], and the number of open brackets around it [N]."""

    choice: Integers
    bracket: Integers
    around: Integers


def strings(rng: RandomStream, count: int, pairs: int, p: float, q: float, lengths: Interval) -> Ragged:
    """Draws `count` strings of the grammar and returns those of the given lengths.

    As in the published generator, an S is empty if `lengths.high` brackets are open around it, or if its string is
    longer than `lengths.high`."""
    longest = lengths.high
    levels: list[_Level] = []
    around = np.zeros(count, dtype=np.int64)
    nested, two = np.uint64(round(p * 2**32)), np.uint64(round((p + q) * 2**32))
    while len(around):
        words = rng.words(len(around))
        high = words >> np.uint64(32)
        choice = np.where(high < nested, _NESTED, np.where(high < two, _TWO, _EMPTY))
        choice[around >= longest] = _EMPTY
        bracket = ((words & np.uint64(0xFFFFFFFF)) * np.uint64(pairs) >> np.uint64(32)).astype(np.int64)
        levels.append(_Level(choice, bracket, around))
        around = np.repeat(around + 2 * (choice == _NESTED), choice)
    sizes = _sizes(levels, longest)
    selected = (sizes[0] >= lengths.low) & (sizes[0] <= longest)
    return _write(levels, sizes, selected)


def _sizes(levels: list[_Level], longest: int) -> list[Integers]:
    """Returns the length of every S of every level. The number of a rule, 0, 1 or 2, is also the number of its
    children."""
    sizes: list[Integers] = []
    below = np.zeros(0, dtype=np.int64)
    for level in reversed(levels):
        running, first = offsets_of(below), offsets_of(level.choice)
        size = running[first[1:]] - running[first[:-1]] + 2 * (level.choice == _NESTED)
        size[size > longest] = 0
        sizes.append(size)
        below = size
    return sizes[::-1]


def _write(levels: list[_Level], sizes: list[Integers], selected: Truths) -> Ragged:
    offsets = offsets_of(sizes[0][selected])
    values = np.empty(offsets[-1], dtype=np.uint8)
    # The start of each S that is written; the others are dropped level by level.
    written, starts = selected, np.zeros(len(selected), dtype=np.int64)
    starts[selected] = offsets[:-1]
    for depth, level in enumerate(levels):
        size = sizes[depth]
        written = written & (size > 0)
        at = np.flatnonzero(written & (level.choice == _NESTED))
        values[starts[at]] = 2 * level.bracket[at]
        values[starts[at] + size[at] - 1] = 2 * level.bracket[at] + 1
        if depth + 1 == len(levels):
            break
        first = offsets_of(level.choice)
        owner = np.repeat(np.arange(len(size)), level.choice)
        running = offsets_of(sizes[depth + 1])
        starts = starts[owner] + (level.choice[owner] == _NESTED) + running[:-1] - running[first[owner]]
        written = written[owner]
    return Ragged(values, offsets)


def allowed(x: Ragged, pairs: int) -> npt.NDArray[np.bool_]:
    """Returns the symbols that may follow each position: [P, 2 pairs]."""
    rows = np.zeros((len(x.values), 2 * pairs), dtype=np.bool_)
    rows[:, 0::2] = True
    opening = x.values % 2 == 0
    depth = np.cumsum(np.where(opening, 1, -1))
    # All strings are balanced, so depths can be counted through all of them. The innermost open bracket at a position
    # is the last one that raised the depth to the depth at this position.
    order = np.argsort(depth, kind="stable")
    opened = np.maximum.accumulate(np.where(opening[order], np.arange(len(order)), 0))
    innermost = np.empty_like(order)
    innermost[order] = order[opened]
    inside = np.flatnonzero(depth > 0)
    rows[inside, x.values[innermost[inside]].astype(np.int64) + 1] = True
    return rows
