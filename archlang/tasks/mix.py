"""Mix: answer with the middle symbol and the first symbol of the sequence alternately.

Le et al. (2024), Pointer-Augmented Neural Memory, section 3.1.

>>> task = Mix(train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][0]), task.spell(train.inputs["target"][0]), task.spell(train.targets[0])
('[B] 6 3 4 4 1 9 8 0 6 [E]', '[B] 1 6 1 6 1 6 1 6', '1 6 1 6 1 6 1 6 1')
>>> task.spell(train.inputs["source"][1]), task.spell(train.inputs["target"][1]), task.spell(train.targets[1])
('[B] 0 3 7 7 0 0 2 9 8 [E]', '[B] 0 0 0 0 0 0 0 0', '0 0 0 0 0 0 0 0 0')
"""

import numpy as np

from archlang.tasks.copy import Copy
from archlang.tasks.kit.split import Ragged


class Mix(Copy):
    even: str

    def answers(self, symbols: Ragged) -> Ragged:
        lengths = symbols.lengths
        begins = np.repeat(symbols.offsets[:-1], lengths)
        positions = np.arange(len(symbols.values))
        middles = begins + np.repeat((lengths + 1) // 2 - 1, lengths)
        # Positions count from 1, so the first one is odd.
        odd = (positions - begins) % 2 == 0
        indices = np.where(odd, middles, begins if self.even == "first" else positions)
        return Ragged(symbols.values[indices], symbols.offsets)
