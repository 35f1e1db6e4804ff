"""How the splits of generated sequences are drawn, and their lengths, as `splits.arch` says."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from archlang.tasks.kit.drawing import DISJOINT_SHARES, Drawing, RandomStream, fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, append, join_splits, shift
from archlang.tasks.kit.task import ShippedTask
from archlang.types.statics import Interval

# The width of the groups of lengths that results of `LengthRanges` are broken down by.
_STEP = 50
_BATCH_SYMBOLS = 1 << 20


class ByLength(ShippedTask):
    """A task whose items have lengths, by which results are broken down."""

    breakdown = "length"

    @abstractmethod
    def asked(self, split: str) -> Collection[int]:
        """Returns the lengths that a split has."""

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"length": self.asked(split)}

    @abstractmethod
    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        """Returns random items of these lengths [N], with their group `length`."""


class LengthRanges(ByLength):
    """`train` and `test` are ranges of lengths, each equally likely. Items may repeat, because there are few short
    ones."""

    test: Interval

    disjoint = ("train", "test")
    version = 2

    def asked(self, split: str) -> Collection[int]:
        return (self.test if split == "test" else self.train).values()

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        lengths = self.asked(split)
        return {"length": {max(length // _STEP * _STEP, min(lengths)) for length in lengths}}

    def make(self, split: str, seed: int) -> Split:
        interval = self.test if split == "test" else self.train
        rng = RandomStream(self.name, split, seed)
        items = self.items(rng, interval.low + rng.below(interval.high - interval.low + 1, self.size(split)))
        # A group is called by its shortest length, so those of `train` are none of `test`.
        groups = np.maximum(items.groups["length"] // _STEP * _STEP, interval.low)
        return replace(items, groups={"length": groups})


class DistinctItems(ByLength):
    """Every item of `length` and of each `test_length` is drawn once, and in one split only."""

    length: int
    test_length: tuple[int, ...]
    key: str
    """What the random symbols depend on, besides the split, the length and the seed."""

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", *(("test",) if self.test_length else ()))

    def make(self, split: str, seed: int) -> Split:
        return join_splits([self._draw(split, length, seed) for length in self.asked(split)])

    def asked(self, split: str) -> Collection[int]:
        return self.test_length if split == "test" else (self.length,)

    def _draw(self, split: str, length: int, seed: int) -> Split:
        size = self.size(split)
        rng = RandomStream(self.name, self.key, split, length, seed)
        lengths = np.full(max(1, _BATCH_SYMBOLS // length), length)
        search = Drawing(self.name, f"{split}_size", size, "choose longer sequences", share=DISJOINT_SHARES[split])
        parts = list[Split]()
        while search.missing or not parts:
            batch = self.items(rng, lengths)
            batch = replace(batch, groups={"length": lengths})
            parts.append(batch.select(search.pick(fingerprints(next(iter(batch.inputs.values()))))))
        return join_splits(parts)


class ListedLengths(ByLength):
    """`train` and `valid` are ranges of lengths, each equally likely; `test` lists lengths. Items may repeat."""

    valid: Interval
    test: tuple[int, ...]

    disjoint = ("train", "valid", "test")

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train", "iid") if self.iid_size else ("train",)

    def split_names(self) -> tuple[str, ...]:
        return (*self.in_distribution, "valid", "test")

    def asked(self, split: str) -> Collection[int]:
        lengths: dict[str, Collection[int]] = {
            "train": self.train.values(), "iid": (self.train.high,), "valid": self.valid.values(), "test": self.test,
        }  # fmt: skip
        return lengths[split]

    def make(self, split: str, seed: int) -> Split:
        rng = RandomStream(self.name, split, seed)
        match split:
            case "train":
                lengths = self.train.low + rng.below(self.train.high - self.train.low + 1, self.train_size)
            case "iid":
                lengths = np.full(self.iid_size, self.train.high)
            case "valid":
                lengths = self.valid.low + rng.below(self.valid.high - self.valid.low + 1, self.valid_size)
            case _:
                lengths = np.repeat(np.asarray(self.test, dtype=np.int64), self.test_size)
        return replace(self.items(rng, lengths), groups={"length": lengths})


def answered(fields: Mapping[str, Ragged], answers: Ragged, begin: int, end: int | None) -> Split:
    """Returns the items of a decoder, whose input `target` begins with `begin`; the answers end with `end`, or with
    their last symbol."""
    targets = answers if end is None else append(answers, end)
    return Split({**fields, "target": shift(targets, begin)}, targets)
