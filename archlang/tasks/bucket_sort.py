"""Bucket sort: sort a sequence over a small set of symbols.

A context-sensitive task of Delétang et al. (2023), Neural Networks and the Chomsky Hierarchy.

>>> from archlang.types.statics import Interval
>>> task = BucketSort(train=Interval(1, 6), test=Interval(7, 9), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0][train.scored[0]])
('4 0 ? ?', '0 4')
>>> task.spell(train.inputs["x"][3]), task.spell(train.targets[3][train.scored[3]])
('0 0 1 4 3 ? ? ? ? ?', '0 0 1 3 4')
"""

import numpy as np

from archlang.tasks.kit.chomsky_hierarchy import ChomskyTask, length_groups, random_symbols, with_answer_tape
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, Split
from archlang.tasks.kit.task import Kind, Unit


class BucketSort(ChomskyTask):
    symbols: int

    kind = Kind.TAGGING
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.vocabulary[: self.symbols]

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*(str(symbol) for symbol in range(self.symbols)), "?")

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        symbols = random_symbols(rng, self.symbols, lengths)
        order = np.lexsort((symbols.values, np.repeat(np.arange(len(lengths)), lengths)))
        answers = Ragged(symbols.values[order], symbols.offsets)
        x, targets, scored = with_answer_tape(symbols, answers, empty=self.symbols)
        return Split({"x": x}, targets, scored, length_groups(lengths))
