"""Argsort: point at the numbers of a sequence in ascending order.

Vinyals, Fortunato and Jaitly (2015), Pointer Networks; Vinyals, Bengio and Kudlur (2016), Order Matters, section 4.3.

>>> task = Argsort(train=Interval(3, 5), test=(8,), numbers=20, train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), train.targets[0].tolist()
('19 17 8 12 3', [4, 2, 3, 1, 0])
>>> task.spell(train.inputs["x"][1]), train.targets[1].tolist()
('2 14 19 7 15', [0, 3, 1, 4, 2])
"""

from collections.abc import Collection, Mapping
from math import perm

import numpy as np

from archlang.tasks.kit.drawing import Fingerprints, RandomStream, draw_distinct, fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, join_splits, offsets_of
from archlang.tasks.kit.task import Kind, ShippedTask
from archlang.types.statics import Interval

_BATCH = 1 << 12
_REMEDY = "choose more `numbers`, or longer sequences"


class Argsort(ShippedTask):
    test: tuple[int, ...]
    numbers: int

    disjoint = ("train", "test")
    kind = Kind.POINTING
    breakdown = "length"

    def check(self) -> None:
        of_train = sum(map(self._count, self.train.values()))
        of_test = min(map(self._count, self.test))
        self.check_available({"train": of_train, "valid": of_train, "test": of_test}, _REMEDY)

    def _count(self, length: int) -> int:
        """The number of sequences of a length; of a long one, fewer, which are more than any split has."""
        return perm(self.numbers, min(length, 12))

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return tuple(str(number) for number in range(self.numbers))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"length": self.test if split == "test" else self.train.values()}

    def make(self, split: str, seed: int) -> Split:
        ranges = [Interval(length, length) for length in self.test] if split == "test" else [self.train]
        return join_splits([self._draw(split, lengths, seed) for lengths in ranges])

    def _draw(self, split: str, lengths: Interval, seed: int) -> Split:
        rng = RandomStream(self.name, split, lengths.low, lengths.high, seed)

        def draw(count: int) -> tuple[Split, Fingerprints]:
            return self._items(rng, lengths.low + rng.below(lengths.high - lengths.low + 1, count))

        return draw_distinct(self.name, split, self.size(split), draw, _BATCH, _REMEDY)

    def _items(self, rng: RandomStream, lengths: Integers) -> tuple[Split, Fingerprints]:
        shuffled = np.argsort(rng.words((len(lengths), self.numbers)), axis=1, kind="stable")
        inside = np.arange(self.numbers) < lengths[:, None]
        offsets = offsets_of(lengths)
        x = Ragged(shuffled[inside].astype(np.uint16), offsets)
        # The places behind the end of a sequence come last.
        order = np.argsort(np.where(inside, shuffled, self.numbers), axis=1, kind="stable")
        targets = Ragged(order[inside].astype(np.uint16), offsets)
        return Split({"x": x}, targets, groups={"length": lengths}, points_at="x"), fingerprints(x)
