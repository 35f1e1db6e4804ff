"""Parity: is the number of ones in a sequence of bits odd?

A regular task of Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy.

>>> from archlang.types.statics import Interval
>>> task = Parity(train=Interval(5, 11), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), int(train.targets[0])
('[B] 1 0 0 1 0 1 1 0 1 0 [E]', 1)
>>> task.spell(train.inputs["x"][3]), int(train.targets[3])
('[B] 0 0 0 1 1 0 [E]', 0)
"""

import numpy as np

from archlang.tasks.kit.chomsky_hierarchy import ChomskyTask, length_groups, random_symbols
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Split
from archlang.tasks.kit.task import X_MARKS, Kind, Unit


class Parity(ChomskyTask):
    kind = Kind.CLASSIFICATION
    marks = X_MARKS
    class_names = ("even", "odd")
    unit = Unit.SAMPLE
    metrics = ("accuracy",)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return ("0", "1", *(("[E]", "[B]") if self.begin_end else ()))

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        bits = random_symbols(rng, 2, lengths)
        ones = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(bits.values, dtype=np.int64)])
        odd = (ones[bits.offsets[1:]] - ones[bits.offsets[:-1]]) % 2
        return Split({"x": self.enclosed(bits)}, odd, groups=length_groups(lengths))
