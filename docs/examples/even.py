"""A task: is the number of ones in a sequence of bits even?"""

from dataclasses import dataclass

import numpy as np

from archlang.tasks import Kind, Ragged, Split, Unit
from archlang.types.statics import Interval

SHORT, LONG = Interval(1, 8), Interval(9, 16)


@dataclass(frozen=True)
class Even:
    """The statics of the signature, with the same defaults."""

    train: Interval = SHORT
    test: Interval = LONG

    kind = Kind.CLASSIFICATION
    vocabulary = ("0", "1")
    class_names = ("even", "odd")
    breakdown = "length"
    in_distribution = ("train",)
    unit = Unit.SAMPLE
    metrics = ("accuracy",)
    version = 1

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test")

    def generate(self, split: str, seed: int) -> Split:
        lengths: Interval = getattr(self, split)
        random = np.random.default_rng([seed, lengths.low])
        rows = [random.integers(0, 2, random.integers(lengths.low, lengths.high + 1)).tolist() for _ in range(500)]
        x = Ragged.of(rows)
        return Split({"x": x}, np.array([sum(row) % 2 for row in rows]), groups={"length": x.lengths})
