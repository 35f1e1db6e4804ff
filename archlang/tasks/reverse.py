"""Reverse: repeat a sequence of symbols from its end, last in first out.

Le et al. (2024), Pointer-Augmented Neural Memory, section 3.1.

>>> task = Reverse(train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][0]), task.spell(train.inputs["target"][0]), task.spell(train.targets[0])
('[B] 5 2 4 9 4 8 5 5 [E]', '[B] 5 5 8 4 9 4 2', '5 5 8 4 9 4 2 5')
>>> task.spell(train.inputs["source"][1]), task.spell(train.inputs["target"][1]), task.spell(train.targets[1])
('[B] 0 5 [E]', '[B] 5', '5 0')
"""

import numpy as np

from archlang.tasks.copy import Copy
from archlang.tasks.kit.split import Ragged


class Reverse(Copy):
    def answers(self, symbols: Ragged) -> Ragged:
        # Index p of a sequence at a … b - 1 gets the symbol at index a + b - 1 - p.
        ends = np.repeat(symbols.offsets[:-1] + symbols.offsets[1:] - 1, symbols.lengths)
        return Ragged(symbols.values[ends - np.arange(len(symbols.values))], symbols.offsets)
