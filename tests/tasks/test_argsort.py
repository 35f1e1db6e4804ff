"""Argsort points at the numbers in ascending order."""

import pytest

from archlang.tasks.argsort import Argsort
from archlang.types.statics import Interval
from tests.tasks.every import answers_of

SMALL = Argsort(train=Interval(2, 6), test=(8, 9), numbers=12, train_size=300, valid_size=20, test_size=10)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_pointed_numbers_ascend_and_no_position_is_pointed_at_twice(split: str) -> None:
    items = SMALL.generate(split, 0)
    assert items.points_at == "x"
    for index in range(len(items)):
        numbers, order = items.inputs["x"][index], answers_of(items)[index]
        assert numbers[order].tolist() == sorted(set(numbers.tolist()))
        assert sorted(order.tolist()) == list(range(len(numbers)))
        assert items.groups["length"][index] == len(numbers)


def test_each_test_length_has_the_same_number_of_items() -> None:
    assert SMALL.generate("test", 0).groups["length"].tolist() == [8] * 10 + [9] * 10
