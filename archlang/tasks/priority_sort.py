"""Priority sort: sort symbols by a number that accompanies each of them.

Le et al. (2024), Pointer-Augmented Neural Memory, appendix D.1.

>>> task = PrioritySort(train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][2]), task.spell(train.targets[2])
('[B] 1 9 5 1 0 6 3 2 9 [E]', '3 1 6 5 9 2 1 0 9')
>>> [f"{priority:.2f}" for priority in train.inputs["priority"][2][:, 0]]
['0.00', '0.25', '0.48', '0.35', '0.71', '0.93', '0.34', '-1.03', '0.58', '2.08', '0.00']
>>> task.spell(train.inputs["source"][4]), task.spell(train.targets[4])
('[B] 4 5 [E]', '4 5')
>>> [f"{priority:.2f}" for priority in train.inputs["priority"][4][:, 0]]
['0.00', '-1.29', '1.25', '0.00']
"""

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.lengths import SymbolPairs
from archlang.tasks.kit.lexicon import ENCLOSED
from archlang.tasks.kit.split import Ragged, enclose
from archlang.tasks.kit.task import PAIR_MARKS


class PrioritySort(SymbolPairs):
    marks = PAIR_MARKS | {"priority": ENCLOSED}

    def pairs_of(self, rng: RandomStream, symbols: Ragged) -> tuple[dict[str, Ragged], Ragged]:
        priorities = rng.normal(len(symbols.values)).astype(np.float32)
        items = np.repeat(np.arange(len(symbols)), symbols.lengths)
        order = np.lexsort((priorities, items))
        fields = {
            "source": enclose(symbols, begin=self.begin, end=self.symbols),
            "priority": enclose(Ragged(priorities[:, None], symbols.offsets), begin=0, end=0),
        }
        return fields, Ragged(symbols.values[order], symbols.offsets)
