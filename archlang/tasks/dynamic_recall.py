"""Dynamic recall: find a symbol in the sequence, and answer with its left or right neighbour.

Le et al. (2024), Pointer-Augmented Neural Memory, appendix D.1. One symbol is the answer in the example of its Table 6;
`answer = rest` is another reading of its text.

>>> task = DynamicRecall(train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][3]), task.spell(train.inputs["target"][3]), task.spell(train.targets[3])
('[B] 6 2 7 8 2 1 2 8 2 [E]', '[B]', '6')
>>> task.spell(train.inputs["source"][1]), task.spell(train.inputs["target"][1]), task.spell(train.targets[1])
('[B] 4 5 5 1 3 5 [E]', '[B]', '5')
"""

import numpy as np

from archlang.tasks.copy import Copy
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, enclose, offsets_of


class DynamicRecall(Copy):
    answer: str

    def items(self, rng: RandomStream, symbols: Ragged) -> tuple[dict[str, Ragged], Ragged]:
        lengths, begins = symbols.lengths, symbols.offsets[:-1]
        queries = symbols.values[begins + rng.below(lengths, len(lengths))]
        first = begins + _first_positions(symbols, queries)
        step = np.where((lengths + 1) % 2 == 1, -1, 1)
        starts = begins + (first - begins + step) % lengths
        count = np.ones_like(lengths) if self.answer == "neighbour" else symbols.offsets[1:] - starts
        offsets = offsets_of(count)
        positions = np.repeat(starts, count) + np.arange(offsets[-1]) - np.repeat(offsets[:-1], count)
        with_query = Ragged(np.insert(symbols.values, symbols.offsets[1:], queries), offsets_of(lengths + 1))
        return {"source": enclose(with_query, begin=self.begin, end=self.symbols)}, Ragged(
            symbols.values[positions], offsets
        )


def _first_positions(symbols: Ragged, queries: np.ndarray) -> Integers:
    lengths = symbols.lengths
    within = np.arange(len(symbols.values)) - np.repeat(symbols.offsets[:-1], lengths)
    equal = symbols.values == np.repeat(queries, lengths)
    return np.minimum.reduceat(np.where(equal, within, np.iinfo(np.int64).max), symbols.offsets[:-1])
