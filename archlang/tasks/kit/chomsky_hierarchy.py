"""What the tasks of the Chomsky hierarchy share: sequences of random symbols, trained on short and tested on long ones.

Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy. Every length of a split is equally likely; items may
occur twice, as short ones must."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from archlang.tasks.kit.checks import check_ranges, check_sizes, check_split
from archlang.tasks.kit.ragged import Integers, Ragged, offsets_of
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split
from archlang.types.statics import Interval

PUBLISHED_TRAIN, PUBLISHED_TEST = Interval(1, 40), Interval(41, 500)
LONGEST = 4_096
# Results are broken down by so many lengths at once.
_STEP = 50


@dataclass(frozen=True, kw_only=True)
class ByLength(ABC):
    """A task of this form. `train` and `test` are ranges of lengths."""

    train: Interval = PUBLISHED_TRAIN
    test: Interval = PUBLISHED_TEST
    train_size: int = 1_000_000
    valid_size: int = 2_000
    test_size: int = 10_000

    name: ClassVar[str]
    breakdown = "length"
    in_distribution = ("train", "valid")
    version = 1

    def __post_init__(self) -> None:
        check_sizes(self.name, self)
        check_ranges(self.name, {"train": self.train, "test": self.test}, 1, LONGEST)

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", "test")

    def generate(self, split: str, seed: int) -> Split:
        check_split(self.name, split, self.split_names())
        allowed, size = self.test if split == "test" else self.train, getattr(self, f"{split}_size")
        rng = RandomStream(self.name, split, seed)
        lengths = allowed.low + rng.below(allowed.high - allowed.low + 1, size)
        return self.items(rng, lengths)

    @abstractmethod
    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        """Random items of these lengths."""


def groups(lengths: Integers) -> dict[str, Integers]:
    """Lengths in steps: 0 is below 50, 50 is 50 to 99, and so on."""
    return {"length": lengths // _STEP * _STEP}


def symbols(rng: RandomStream, count: int, lengths: Integers) -> Ragged:
    """Random rows of so many symbols."""
    offsets = offsets_of(lengths)
    return Ragged(rng.below(count, int(offsets[-1])).astype(np.uint8), offsets)


def asked(x: Ragged, answers: Ragged, empty: int, scored: Ragged | None = None) -> tuple[Ragged, Ragged, Ragged]:
    """Each sequence with as many `empty` symbols behind it as it has answers; the answers, which stand there; and the
    marks of the positions that count."""
    lengths = x.lengths + answers.lengths
    offsets = offsets_of(lengths)
    behind = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths) >= np.repeat(x.lengths, lengths)
    tape, targets = np.full(offsets[-1], empty, dtype=np.uint8), np.zeros(offsets[-1], dtype=np.uint8)
    tape[~behind], targets[behind] = x.values, answers.values
    marks = np.zeros(offsets[-1], dtype=np.bool_)
    marks[behind] = True if scored is None else scored.values
    return Ragged(tape, offsets), Ragged(targets, offsets), Ragged(marks, offsets)
