"""Priority sort answers with the symbols in order of priority."""

import numpy as np
import pytest

from archlang.tasks.priority_sort import PrioritySort
from tests.tasks.every import answers_of

SMALL = PrioritySort(train_size=1_000, valid_size=20, test_size=5)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_answers_are_in_order_of_priority(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        symbols, priorities = items.inputs["source"][index], items.inputs["priority"][index]
        assert len(symbols) == len(priorities)
        assert priorities[0] == priorities[-1] == 0
        pairs = sorted(zip(priorities[1:-1, 0].tolist(), symbols[1:-1].tolist(), strict=True))
        assert answers_of(items)[index].tolist() == [symbol for _, symbol in pairs]
        assert items.inputs["target"][index].tolist() == [11, *(symbol for _, symbol in pairs[:-1])]


def test_priorities_are_normal_and_differ() -> None:
    priorities = SMALL.generate("train", 0).inputs["priority"].values[:, 0]
    drawn = priorities[priorities != 0]
    assert len(np.unique(drawn)) > 0.999 * len(drawn)
    assert abs(drawn.mean()) < 0.05
    assert abs(drawn.std() - 1) < 0.05


def test_lengths_are_the_published_ones() -> None:
    assert set(SMALL.generate("train", 0).groups["length"].tolist()) == set(range(1, 11))
    assert set(SMALL.generate("valid", 0).groups["length"].tolist()) == {11}
    assert np.unique(SMALL.generate("test", 0).groups["length"]).tolist() == [21, 41, 81]
