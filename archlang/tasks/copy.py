"""Copy: repeat a sequence of symbols, first in first out.

Le et al. (2024), Pointer-Augmented Neural Memory, section 3.1. Items may repeat, because there are few short ones.

>>> task = Copy(train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][0]), task.spell(train.inputs["target"][0]), task.spell(train.targets[0])
('[B] 6 9 4 7 9 6 4 2 4 [E]', '[B] 6 9 4 7 9 6 4 2', '6 9 4 7 9 6 4 2 4')
>>> task.spell(train.inputs["source"][1]), task.spell(train.inputs["target"][1]), task.spell(train.targets[1])
('[B] 8 7 0 [E]', '[B] 8 7', '8 7 0')
"""

from collections.abc import Collection, Mapping

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Ragged, Split, append, enclose, offsets_of, shift
from archlang.tasks.kit.task import PairTask, Unit
from archlang.types.statics import Interval


class Copy(PairTask):
    valid: Interval
    test: tuple[int, ...]
    symbols: int
    eos: bool

    disjoint = ("train", "valid", "test")
    breakdown = "length"
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(str(symbol) for symbol in range(self.symbols)), "[E]", "[B]")

    @property
    def end(self) -> int | None:  # type: ignore[override] # the length of the target ends an answer without `[E]`
        return self.symbols if self.eos else None

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return ("train", "iid") if self.iid_size else ("train",)

    def split_names(self) -> tuple[str, ...]:
        return (*self.in_distribution, "valid", "test")

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        lengths: dict[str, Collection[int]] = {
            "train": self.train.values(), "iid": (self.train.high,), "valid": self.valid.values(), "test": self.test,
        }  # fmt: skip
        return {"length": lengths[split]}

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
        offsets = offsets_of(lengths)
        symbols = Ragged(rng.below(self.symbols, int(offsets[-1])).astype(np.uint8), offsets)
        begin, end = self.symbols + 1, self.symbols
        fields, targets = self.items(rng, symbols)
        if self.eos:
            targets = append(targets, end)
        return Split({**fields, "target": shift(targets, begin)}, targets, groups={"length": lengths})

    def items(self, rng: RandomStream, symbols: Ragged) -> tuple[dict[str, Ragged], Ragged]:
        """Returns the input fields other than `target`, and the answers."""
        return {"source": enclose(symbols, begin=self.symbols + 1, end=self.symbols)}, self.answers(symbols)

    def answers(self, symbols: Ragged) -> Ragged:
        """Returns the answer to each sequence, of the same length."""
        return symbols
