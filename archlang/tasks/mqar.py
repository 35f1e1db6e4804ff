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
from math import isqrt

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
    # Of `mqar_variants`
    more_length: tuple[int, ...] = ()
    more_pairs: tuple[int, ...] = ()
    more_size = updates = 0
    compound = False

    kind = Kind.LANGUAGE_MODEL
    breakdown = "length"
    groups = ("length", "pairs")
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    def check(self) -> None:
        for name in ("more", "test"):
            counts = [len(getattr(self, f"{name}_{list_name}")) for list_name in ("length", "pairs")]
            if counts[0] != counts[1]:
                raise mistakes.lists_differ(f"{name}_length", self.name, counts[0], f"{name}_pairs", counts[1])
        part, stride = self.words // (self.key_size + 1), self.key_size + 1
        for split, static in (("train", "more_pairs"), ("test", "test_pairs")):
            for number, (length, pairs) in enumerate(self._cells(split)):
                # A pair takes twice its size: its key, its value, the repeated key, and one symbol after it.
                most = min((length // stride - self.updates) // 2, (part - 1) ** self.key_size, part)
                if not max(self.updates, 1) <= pairs <= most:
                    name = "pairs" if (split, number) == ("train", 0) else static
                    raise mistakes.outside(self.name, name, pairs, max(self.updates, 1), most)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(str(word) for word in range(self.words))

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", *(("test",) if self.test_length else ()))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        cells = self._cells(split)
        return {"length": {length for length, _ in cells}, "pairs": {pairs for _, pairs in cells}}

    def make(self, split: str, seed: int) -> Split:
        sizes = [self.size(split), *([self.more_size] * len(self.more_pairs) if split == "train" else [])]
        cells = enumerate(self._cells(split))
        return join_splits([self._draw(split, *cell, seed, sizes[min(at, len(sizes) - 1)]) for at, cell in cells])

    @property
    def key_size(self) -> int:
        return 1 + self.compound

    def _cells(self, split: str) -> list[tuple[int, int]]:
        lengths, pairs = (self.length, *self.more_length), (self.pairs, *self.more_pairs)
        if split == "test":
            lengths, pairs = self.test_length, self.test_pairs
        return list(zip(lengths, pairs, strict=False))

    def _draw(self, split: str, length: int, pairs: int, seed: int, size: int) -> Split:
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
        stride, part = self.key_size + 1, self.words // (self.key_size + 1)
        low, choices = self.key_size * part, self.words - self.key_size * part
        keys = self._keys(rng, count, pairs, part)
        values = low + _without_repeats(rng, choices, pairs, count)
        facts = np.concatenate([keys, values[:, :, None]], axis=2)
        rows = rng.below(self.words, (count, length))
        if self.updates:
            again = _without_repeats(rng, pairs, self.updates, count)
            others = 1 + rng.below(choices - 1, again.shape)
            np.put_along_axis(values, again, low + (np.take_along_axis(values, again, 1) - low + others) % choices, 1)
            updated = np.concatenate([keys, values[:, :, None]], axis=2)
            facts = np.concatenate([facts, np.take_along_axis(updated, again[:, :, None], 1)], axis=1)
        context = facts.shape[1] * stride
        rows[:, :context] = facts.reshape(count, context)
        positions = context + stride * _gaps(rng, (length - context) // stride, pairs, count, self.power)
        answers = np.full((count, length), -1, dtype=np.int64)
        for place in range(self.key_size):
            np.put_along_axis(rows, positions + place, keys[:, :, place], axis=1)
        np.put_along_axis(answers, positions + self.key_size - 1, values, axis=1)
        return rows, answers

    def _keys(self, rng: RandomStream, count: int, pairs: int, part: int) -> Integers:
        """Returns different keys [count, pairs, key size]. Compound ones are cells of a grid, as small as it can be, so
        that no half of a key determines its value."""
        if not self.compound:
            return 1 + _without_repeats(rng, part - 1, pairs, count)[:, :, None]
        side = isqrt(pairs - 1) + 1
        halves = 1 + _without_repeats(rng, part - 1, side, count), part + _without_repeats(rng, part, side, count)
        cells = _without_repeats(rng, side * side, pairs, count)
        return np.stack(
            [np.take_along_axis(halves[0], cells // side, 1), np.take_along_axis(halves[1], cells % side, 1)], 2
        )


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
