"""Flip-flop language modelling: recall the bit that was written last.

Liu et al. (2023), in the setting of Ray Chowdhury & Caragea (2024). The model reads `i` before the first symbol.

>>> task = FlipFlop(length=12, ignore=0.4, test_length=(14,), train_size=40, iid_size=9, valid_size=9, test_size=9)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0]), task.spell(train.targets[0][train.scored[0]])
('i w 0 i 1 w 1 i 0 i 0 r', 'w 0 i 1 w 1 i 0 i 0 r 1', '1')
>>> task.spell(train.inputs["x"][1]), task.spell(train.targets[1]), task.spell(train.targets[1][train.scored[1]])
('i w 0 i 1 w 0 i 1 w 1 r', 'w 0 i 1 w 0 i 1 w 1 r 1', '1')
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.drawing import Drawing, RandomStream, Seen, in_share, table_fingerprints
from archlang.tasks.kit.split import Ragged, Split, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

VOCABULARY = ("w", "i", "r", "0", "1")
WRITE, IGNORE, READ, ZERO = range(4)
# The share of all sequences that a split may hold, by the fingerprint of their first symbols. With fingerprints of
# whole sequences, the many rejected sequences would have to be drawn in full.
SHARES = {"train": (0.0, 0.5), "iid": (0.5, 0.625), "valid": (0.625, 0.75), "test": (0.75, 1.0)}
_FIRST_PAIRS = 32
_BATCH_SYMBOLS, _BATCH = 1 << 21, 1 << 12

Tokens = npt.NDArray[np.uint8]


class FlipFlop(ShippedTask):
    ignore: float
    length: int
    test_ignore: tuple[float, ...]
    test_length: tuple[int, ...]

    splits = ("train", "iid", "valid", "test")
    vocabulary = VOCABULARY
    breakdown = "ignore"
    groups = ("ignore", "length")
    kind = Kind.LANGUAGE_MODEL
    in_distribution = ("train", "iid")
    unit = Unit.POSITION
    metrics = ("accuracy", "last_accuracy", "sequence_accuracy")

    def check(self) -> None:
        for static, values in (("test_length", self.test_length), ("test_ignore", self.test_ignore)):
            if len(set(values)) < len(values):
                raise mistakes.repeated_value(static, next(value for value in values if values.count(value) > 1))
        for length in self.test_length:
            if length % 2:
                raise mistakes.odd_length("test_length", length)
        for static, ignores in (("ignore", (self.ignore,)), ("test_ignore", self.test_ignore)):
            for ignore in ignores:
                if not isinstance(ignore, int | float):
                    raise mistakes.not_of_kind(static, ignore, "number")
                if not 0 <= ignore <= 1:
                    raise mistakes.outside(self.name, static, ignore, 0, 1)
                if abs(100 * ignore - round(100 * ignore)) > 1e-6:
                    raise mistakes.not_whole_percent(static, ignore)
        available = {
            split: min(_count(length, ignore) for ignore, length in self._ignore_and_length(split))
            * int(8 * (high - low))
            // 8
            for split, (low, high) in SHARES.items()
        }
        self.check_available(available, "choose longer sequences")

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        cells = self._ignore_and_length(split)
        return {"ignore": [round(100 * ignore) for ignore, _ in cells], "length": [length for _, length in cells]}

    def make(self, split: str, seed: int) -> Split:
        size = self.size(split)
        # A cell may occur twice in valid, if the setting of train is also one of test. One `Seen` keeps its items
        # distinct.
        seen = Seen()
        return join_splits(
            [
                _as_split(self._draw(RandomStream("flipflop", split, number, seed), split, size, *cell, seen), cell[0])
                for number, cell in enumerate(self._ignore_and_length(split))
            ]
        )

    def _ignore_and_length(self, split: str) -> Sequence[tuple[float, int]]:
        train = [] if split == "test" else [(self.ignore, self.length)]
        if split in ("train", "iid"):
            return train
        return [*train, *((ignore, length) for ignore in self.test_ignore for length in self.test_length)]

    def _draw(self, rng: RandomStream, split: str, size: int, ignore: float, length: int, seen: Seen) -> Tokens:
        sequences = np.empty((size, length), dtype=np.uint8)
        search = Drawing(self.name, f"{split}_size", size, "choose longer sequences", seen=seen)
        first = min(length // 2, _FIRST_PAIRS)
        batch = min(_BATCH_SYMBOLS // length, _BATCH)
        while search.missing:
            words = rng.words((batch, first))
            beginnings = _sequences(words, ignore, ends=first == length // 2)
            words = words[in_share(table_fingerprints(beginnings), *SHARES[split])]
            words = np.concatenate([words, rng.words((len(words), length // 2 - first))], axis=1)
            rows = _sequences(words, ignore, ends=True)
            done = size - search.missing
            rows = rows[search.pick(table_fingerprints(rows))]
            sequences[done : done + len(rows)] = rows
        return sequences


def _sequences(words: npt.NDArray[np.uint64], ignore: float, ends: bool) -> Tokens:
    """Returns a sequence [N, 2 pairs] for each row of words [N, pairs]: the high half of a word determines an
    instruction, and its lowest bit is the bit."""
    count, pairs = words.shape
    high = words >> np.uint64(32)
    instructions = np.full((count, pairs), READ, dtype=np.uint8)
    instructions[high < np.uint64(round((1 + ignore) / 2 * 2**32))] = WRITE
    instructions[high < np.uint64(round(ignore * 2**32))] = IGNORE
    instructions[:, 0] = WRITE
    if ends:
        instructions[:, -1] = READ
    # A read returns the bit of the last write before it.
    places = np.where(instructions == WRITE, np.arange(pairs, dtype=np.int32), 0)
    np.maximum.accumulate(places, axis=1, out=places)
    bits = (words & np.uint64(1)).astype(np.uint8)
    remembered = np.take_along_axis(bits, places, axis=1)
    rows = np.empty((count, 2 * pairs), dtype=np.uint8)
    rows[:, 0::2] = instructions
    rows[:, 1::2] = ZERO + np.where(instructions == READ, remembered, bits)
    return rows


def _as_split(rows: Tokens, ignore: float) -> Split:
    inputs = np.full_like(rows, IGNORE)
    inputs[:, 1:] = rows[:, :-1]
    scored = inputs == READ
    count, length = rows.shape
    groups = {"ignore": np.full(count, round(100 * ignore)), "length": np.full(count, length)}
    return Split({"x": Ragged.table(inputs)}, Ragged.table(rows), Ragged.table(scored), groups)


def _count(length: int, ignore: float) -> int:
    """Returns the number of sequences: the first bit is free, the last pair is determined, and between them the bits
    after `w` and `i` are free."""
    free = 2 if ignore == 1 else 3 if ignore == 0 else 5
    return 2 * int(free ** (length // 2 - 2)) if length > 2 else 0
