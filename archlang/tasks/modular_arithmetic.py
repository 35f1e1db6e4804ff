"""Modular arithmetic: compute an expression of numbers with +, - and *, modulo 5.

A regular task of Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy.

>>> from archlang.types.statics import Interval
>>> task = ModularArithmetic(train=Interval(5, 11), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), int(train.targets[0])
('[B] 4 * 3 * 3 [E]', 1)
>>> task.spell(train.inputs["x"][3]), int(train.targets[3])
('[B] 1 - 4 - 4 [E]', 3)
"""

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.chomsky_hierarchy import ChomskyTask, length_groups
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, Split, offsets_of
from archlang.tasks.kit.task import X_MARKS, Kind, Unit


class ModularArithmetic(ChomskyTask):
    modulus: int

    kind = Kind.CLASSIFICATION
    marks = X_MARKS
    unit = Unit.SAMPLE
    metrics = ("accuracy",)

    def check(self) -> None:
        # After this reduction, lengths of train and test must still differ.
        if _odd(self.test.low) <= _odd(self.train.high) and _odd(self.train.low) <= _odd(self.test.high):
            raise mistakes.ranges_overlap("train", self.train, "test", self.test, self.name)

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.vocabulary[: self.modulus]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        numbers = tuple(str(number) for number in range(self.modulus))
        return (*numbers, "+", "-", "*", *(("[E]", "[B]") if self.begin_end else ()))

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        lengths = lengths - (lengths + 1) % 2
        offsets = offsets_of(lengths)
        positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        numbers, operators = rng.below(self.modulus, len(positions)), self.modulus + rng.below(3, len(positions))
        x = Ragged(np.where(positions % 2 == 0, numbers, operators).astype(np.uint8), offsets)
        return Split({"x": self.enclosed(x)}, self._values(x), groups=length_groups(lengths))

    def _values(self, x: Ragged) -> Integers:
        """Returns the values [N] of all expressions. It reads them from left to right and keeps the sum and the last
        product."""
        starts, lengths = x.offsets[:-1], x.lengths
        plus, minus = self.modulus, self.modulus + 1
        total, product = np.zeros(len(x), dtype=np.int64), x.values[starts].astype(np.int64)
        for position in range(1, int(lengths.max(initial=1)), 2):
            at = np.flatnonzero(lengths > position)
            operator, number = x.values[starts[at] + position], x.values[starts[at] + position + 1].astype(np.int64)
            sums = (operator == plus) | (operator == minus)
            total[at] = np.where(sums, (total[at] + product[at]) % self.modulus, total[at])
            signed = np.where(operator == minus, -number, number)
            product[at] = np.where(sums, signed, product[at] * number) % self.modulus
        return np.asarray((total + product) % self.modulus)


def _odd(length: int) -> int:
    return length - (length + 1) % 2
