"""Id sort answers at each position with the symbol of the same id."""

from collections import Counter

import numpy as np
import pytest

from archlang.tasks.id_sort import IdSort
from tests.tasks.every import answers_of

SMALL = IdSort(train_size=1_000, valid_size=20, test_size=5, id_size=3)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_answers_are_the_symbols_that_share_an_id(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        symbols = items.inputs["source"][index][1:-1].tolist()
        first, *ids, last = [tuple(row) for row in items.inputs["id"][index].tolist()]
        assert first == last == (0.0, 0.0, 0.0)
        alone = [vector for vector, count in Counter(ids).items() if count == 1]
        assert len(alone) == len(symbols) % 2
        assert len(set(ids)) == (len(symbols) + 1) // 2
        asked = []
        for place, vector in enumerate(ids):
            others = [symbol for at, symbol in enumerate(symbols) if ids[at] == vector and at != place]
            asked.append(others[0] if others else symbols[place])
        assert answers_of(items)[index].tolist() == asked


def test_any_two_positions_may_be_a_pair() -> None:
    items = SMALL.generate("train", 0)
    pairs = Counter[int]()
    for index in np.flatnonzero(items.groups["length"] == 4):
        ids = [tuple(row) for row in items.inputs["id"][int(index)].tolist()][1:-1]
        pairs[ids.index(ids[0], 1)] += 1
    assert set(pairs) == {1, 2, 3}
    assert min(pairs.values()) > 15
