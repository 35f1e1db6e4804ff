"""Multi-query associative recall: answer each repeated key with its value.

Arora et al. (2024), Zoology.

>>> task = Mqar(words=12, length=12, pairs=2, test_length=(16,), test_pairs=(4,), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), np.flatnonzero(train.scored[0]), train.targets[0][train.scored[0]]
('4 9 1 11 5 1 1 10 4 8 11 7', array([6, 8]), array([11,  9], dtype=int32))
>>> task.spell(train.inputs["x"][3]), np.flatnonzero(train.scored[3]), train.targets[3][train.scored[3]]
('1 6 4 10 1 7 4 5 11 2 2 7', array([4, 6]), array([ 6, 10], dtype=int32))
"""

from collections.abc import Collection, Mapping

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import DISJOINT_SHARES, Drawing, RandomStream, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

_BATCH = 1 << 13


class Mqar(ShippedTask):
    words: int
    length: int
    pairs: int
    test_length: tuple[int, ...]
    test_pairs: tuple[int, ...]
    power: float

    kind = Kind.LANGUAGE_MODEL
    breakdown = "length"
    groups = ("length", "pairs")
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    def check(self) -> None:
        if len(self.test_length) != len(self.test_pairs):
            counts = len(self.test_length), len(self.test_pairs)
            raise mistakes.lists_differ("test_length", self.name, counts[0], "test_pairs", counts[1])
        for length, pairs in self._cells():
            # A pair takes at least four symbols: the key, the value, the repeated key, and one symbol after it.
            most = min(length // 4, self.words // 2 - 1)
            if pairs > most:
                raise mistakes.outside(self.name, "test_pairs", pairs, 1, most)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(str(word) for word in range(self.words))

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", *(("test",) if self.test_length else ()))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        if split == "test":
            return {"length": self.test_length, "pairs": self.test_pairs}
        return {"length": (self.length,), "pairs": (self.pairs,)}

    def make(self, split: str, seed: int) -> Split:
        cells = self._cells() if split == "test" else ((self.length, self.pairs),)
        return join_splits([self._draw(split, length, pairs, seed) for length, pairs in cells])

    def _cells(self) -> tuple[tuple[int, int], ...]:
        return tuple(zip(self.test_length, self.test_pairs, strict=False))

    def _draw(self, split: str, length: int, pairs: int, seed: int) -> Split:
        size = self.size(split)
        rng = RandomStream("mqar", split, length, pairs, seed)
        search = Drawing(self.name, f"{split}_size", size, "choose more `words`", share=DISJOINT_SHARES[split])
        rows, answers = np.empty((size, length), dtype=np.int32), np.empty((size, length), dtype=np.int32)
        while search.missing:
            batch, batch_answers = self._rows(rng, min(_BATCH, max(64, 2 * search.missing)), length, pairs)
            done, fresh = size - search.missing, search.pick(table_fingerprints(batch))
            end = done + len(fresh)
            rows[done:end], answers[done:end] = batch[fresh], batch_answers[fresh]
        groups = {"length": np.full(size, length), "pairs": np.full(size, pairs)}
        targets = Ragged.table(np.maximum(answers, 0))
        return Split({"x": Ragged.table(rows)}, targets, Ragged.table(answers >= 0), groups)

    def _rows(self, rng: RandomStream, count: int, length: int, pairs: int) -> tuple[Integers, Integers]:
        """Returns random sequences [count, length], and the answer at each position or -1 [count, length]."""
        half = self.words // 2
        keys = 1 + _without_repeats(rng, half - 1, pairs, count)
        values = half + _without_repeats(rng, self.words - half, pairs, count)
        rows = rng.below(self.words, (count, length))
        rows[:, 0 : 2 * pairs : 2], rows[:, 1 : 2 * pairs : 2] = keys, values
        positions = 2 * pairs + 2 * _gaps(rng, (length - 2 * pairs) // 2, pairs, count, self.power)
        answers = np.full((count, length), -1, dtype=np.int64)
        np.put_along_axis(rows, positions, keys, axis=1)
        np.put_along_axis(answers, positions, values, axis=1)
        return rows, answers


def _without_repeats(rng: RandomStream, choices: int, size: int, count: int) -> Integers:
    """Returns rows of distinct random numbers below `choices`: [count, size]. Floyd's algorithm, then a shuffle."""
    subset = np.empty((count, size), dtype=np.int64)
    for column, last in enumerate(range(choices - size, choices)):
        number = rng.below(last + 1, count)
        taken = (subset[:, :column] == number[:, None]).any(axis=1)
        subset[:, column] = np.where(taken, last, number)
    return np.take_along_axis(subset, np.argsort(rng.words((count, size)), axis=1, kind="stable"), axis=1)


def _gaps(rng: RandomStream, space: int, size: int, count: int, power: float) -> Integers:
    """Returns rows of distinct random numbers g below `space`, drawn successively with weights (g + 1)^(power - 1).

    Each number gets an exponential time with its weight as the rate; the numbers with the smallest times are drawn."""
    weights = np.arange(1, space + 1, dtype=np.float64) ** (power - 1)
    # Rounded, because machines differ in the last bits of a power.
    times = rng.exponential((count, space)) / np.round(weights * 2.0**40)
    return np.argsort(times, axis=1, kind="stable")[:, :size]
