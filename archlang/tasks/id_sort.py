"""Id sort: symbols form pairs that share an id; answer at each position with the other symbol of the pair.

Le et al. (2024), Pointer-Augmented Neural Memory, appendix D.1.

>>> task = IdSort(train_size=10, id_size=1)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["source"][2]), task.spell(train.targets[2])
('[B] 3 9 0 [E]', '0 9 3')
>>> [f"{number:.2f}" for number in train.inputs["id"][2][:, 0]]
['0.00', '-2.43', '-0.50', '-2.43', '0.00']
>>> task.spell(train.inputs["source"][4]), task.spell(train.targets[4])
('[B] 3 8 9 1 1 8 2 7 3 0 [E]', '9 1 3 7 8 2 8 1 0 3')
>>> [f"{number:.2f}" for number in train.inputs["id"][4][:, 0]]
['0.00', '0.30', '0.73', '0.30', '0.65', '0.73', '0.86', '0.86', '0.65', '-0.13', '-0.13', '0.00']
"""

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.lengths import SymbolPairs
from archlang.tasks.kit.lexicon import ENCLOSED
from archlang.tasks.kit.split import Ragged, enclose
from archlang.tasks.kit.task import PAIR_MARKS


class IdSort(SymbolPairs):
    id_size: int

    marks = PAIR_MARKS | {"id": ENCLOSED}

    def pairs_of(self, rng: RandomStream, symbols: Ragged) -> tuple[dict[str, Ragged], Ragged]:
        lengths, begins = symbols.lengths, symbols.offsets[:-1]
        items = np.repeat(np.arange(len(symbols)), lengths)
        # The positions of each sequence in random order: the first two are a pair, then the next two.
        order = np.lexsort((rng.words(len(items)), items))
        rank = np.arange(len(items)) - begins[items]
        partner_rank = np.minimum(rank ^ 1, lengths[items] - 1)
        partner = np.empty_like(order)
        partner[order] = order[begins[items] + partner_rank]
        # Both symbols of a pair get the id of the first one in this order.
        numbers = rng.normal(len(items) * self.id_size).astype(np.float32).reshape(-1, self.id_size)
        ids = np.empty_like(numbers)
        ids[order] = numbers[begins[items] + (rank & ~1)]
        fields = {
            "source": enclose(symbols, begin=self.begin, end=self.symbols),
            "id": enclose(Ragged(ids, symbols.offsets), begin=0, end=0),
        }
        return fields, Ragged(symbols.values[partner], symbols.offsets)
