"""Simple arithmetic: compute a nested expression of additions and multiplications of digits, modulo 10.

Csordás et al. (2022), The Neural Data Router, section 3.2 and appendix C.

>>> task = Arithmetic(train_size=240)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), int(train.targets[0]), int(train.groups["depth"][0])
('[B] ( ( ( 0 + 0 ) + 3 ) * ( 3 * 0 ) ) [E]', 0, 3)
>>> task.spell(train.inputs["x"][9]), int(train.targets[9]), int(train.groups["depth"][9])
('[B] ( 3 * 2 ) [E]', 6, 1)
"""

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import Drawing, RandomStream, fingerprints
from archlang.tasks.kit.listops_trees import Trees, join_expressions
from archlang.tasks.kit.split import Integers, Ragged, Split, offsets_of
from archlang.tasks.kit.task import X_MARKS, Kind, ShippedTask
from archlang.types.statics import Interval

VOCABULARY = ("(", ")", "*", "+", *"0123456789")
OPEN, CLOSE, TIMES, PLUS, ZERO = range(5)
SINGLES = 200
# The probability that a node is an operation. (The paper uses 0.2 for all splits.)
PROBABILITY = {"train": 0.2, "iid": 0.2, "valid": 0.3, "test": 0.3}
# Only train and iid have expressions of the same depths. All single operations are in train.
SHARES = {"train": (1 / 16, 1.0), "iid": (0.0, 1 / 16), "valid": (0.0, 1.0), "test": (0.0, 1.0)}
_BATCH = 1 << 13
_WINDOW = 100
_ABSENT = -1


class Arithmetic(ShippedTask):
    valid: Interval
    test: Interval
    max_length: int
    balanced: bool

    splits = ("train", "iid", "valid", "test")
    disjoint = ("train", "valid", "test")
    kind = Kind.CLASSIFICATION
    marks = X_MARKS
    class_names = tuple("0123456789")
    breakdown = "depth"
    in_distribution = ("train", "iid")

    def check(self) -> None:
        # The shortest expression of a depth has 4 tokens more than the shortest one of the previous depth.
        self.check_ranges(("train", "valid", "test"), 1, (self.max_length - 1) // 4)
        if self.train.low == 1 and self.train_size < SINGLES:
            raise mistakes.too_few_for_singles(self.train_size, SINGLES, self.name)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*VOCABULARY, *(("[E]", "[B]") if self.begin_end else ()))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"depth": {"valid": self.valid, "test": self.test}.get(split, self.train).values()}

    def make(self, split: str, seed: int) -> Split:
        depths = {"train": self.train, "iid": self.train, "valid": self.valid, "test": self.test}[split]
        size = self.size(split)
        rng, parts = RandomStream("arithmetic", split, seed), []
        if depths.low == 1 and split in ("train", "iid"):
            depths = Interval(2, depths.high)
            if split == "train":
                parts.append(_singles())
                size -= SINGLES
        if depths.low <= depths.high:
            parts.append(self._draw(rng, split, depths, size))
        items = join_expressions(parts)
        items = items.select(rng.order(len(items)))
        return Split({"x": self.enclosed(items.x)}, items.values, groups={"depth": items.depths})

    def _draw(self, rng: RandomStream, split: str, depths: Interval, size: int) -> Trees:
        """Draws distinct expressions, equally many of each depth if `balanced`."""
        room = np.zeros(depths.high + 1, dtype=np.int64)
        bins = depths.high - depths.low + 1
        if self.balanced:
            room[depths.low :] = size // bins
            room[depths.low : depths.low + size % bins] += 1
        else:
            room[depths.low :] = size
        remedy, share = "raise `max_length`", SHARES[split]
        search = Drawing(self.name, f"{split}_size", size, remedy, share=share, window=_WINDOW)
        parts = list[Trees]()
        while search.missing:
            items = _write(_grow_deep(rng, _BATCH, PROBABILITY[split], depths), self.max_length)
            items = items.select(room[items.depths] > 0)
            items = items.select(search.fresh(fingerprints(items.x)))
            items = items.select(np.flatnonzero(items.within(room))[: search.missing])
            room -= np.bincount(items.depths, minlength=len(room)) if self.balanced else 0
            parts.append(items)
            search.take(len(items))
        return join_expressions(parts)


# N expressions are complete binary trees with one matrix [N, 2^level] per level from the root: a digit, 10 for a
# product, 11 for a sum, or -1 for no node.
_PRODUCT, _SUM = 10, 11
_Trees = list[npt.NDArray[np.int8]]


def _grow(rng: RandomStream, count: int, probability: float, height: int) -> _Trees:
    """Returns `count` random trees of at most this height. A tree of height 0 is a digit."""
    levels: _Trees = []
    present = np.ones((count, 1), dtype=np.bool_)
    for level in range(height + 1):
        words = rng.words((count, 1 << level)) if present.any() else np.zeros((count, 1 << level), dtype=np.uint64)
        digits = ((words >> np.uint64(1) & np.uint64(0x7FFFFFFF)) * np.uint64(10) >> np.uint64(31)).astype(np.int8)
        operation = (words >> np.uint64(32) < np.uint64(round(probability * 2**32))) & (level < height)
        kind = _PRODUCT + (words & np.uint64(1)).astype(np.int8)
        levels.append(np.where(present, np.where(operation, kind, digits), _ABSENT).astype(np.int8))
        present = np.repeat(present & operation, 2, axis=1)
    return levels


def _grow_deep(rng: RandomStream, count: int, probability: float, depths: Interval) -> _Trees:
    """Returns `count` random trees of these depths. A tree that is too shallow becomes the right side of a new
    operation with a new random left side, until it is deep enough."""
    trees = _grow(rng, count, probability, depths.high)
    while len(shallow := np.flatnonzero(_heights(trees) < depths.low)):
        left = _grow(rng, len(shallow), probability, depths.high - 1)
        root = (_PRODUCT + (rng.words((len(shallow), 1)) & np.uint64(1))).astype(np.int8)
        joined = [root, *(np.concatenate([a, b[shallow]], axis=1) for a, b in zip(left, trees, strict=False))]
        for level, rows in zip(trees, joined, strict=False):
            level[shallow] = rows
    return trees


def _heights(trees: _Trees) -> Integers:
    return np.asarray(sum((level >= _PRODUCT).any(axis=1).astype(np.int64) for level in trees))


def _write(trees: _Trees, longest: int) -> Trees:
    sizes: list[Integers] = []
    value = size = np.zeros((len(trees[0]), 2 * trees[-1].shape[1]), dtype=np.int64)
    for level in reversed(trees):
        left, right = value[:, 0::2], value[:, 1::2]
        result = np.where(level == _PRODUCT, left * right, left + right) % 10
        value = np.where(level >= _PRODUCT, result, level)
        size = np.where(level >= _PRODUCT, size[:, 0::2] + size[:, 1::2] + 3, (level >= 0).astype(np.int64))
        sizes.append(size)
    short = np.flatnonzero(size[:, 0] <= longest)
    offsets = offsets_of(size[short, 0])
    tokens = np.empty(offsets[-1], dtype=np.uint8)
    starts = offsets[:-1, None]
    for level in trees:
        rows, size = level[short], sizes.pop()[short]
        digits, operations = (rows >= 0) & (rows < _PRODUCT), rows >= _PRODUCT
        tokens[starts[digits]] = ZERO + rows[digits]
        tokens[starts[operations]] = OPEN
        tokens[(starts + size - 1)[operations]] = CLOSE
        if not sizes:
            break
        between = starts + 1 + sizes[-1][short][:, 0::2]
        tokens[between[operations]] = np.where(rows[operations] == _PRODUCT, TIMES, PLUS)
        starts = np.stack([starts + 1, between + 1], axis=2).reshape(len(short), -1)
    return Trees(Ragged(tokens, offsets), value[short, 0], _heights(trees)[short])


def _singles() -> Trees:
    kind, left, right = np.indices((2, 10, 10)).reshape(3, -1)
    roots, sides = (_PRODUCT + kind)[:, None], np.stack([left, right], axis=1)
    return _write([roots.astype(np.int8), sides.astype(np.int8)], 5)
