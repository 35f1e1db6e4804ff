"""Reverse answers with its input in reverse order."""

import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.reverse import Reverse
from archlang.types.statics import Interval

SMALL = Reverse(train_size=500, valid_size=50, test_size=10)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_answer_is_the_source_from_its_end(split: str) -> None:
    items = SMALL.generate(split, 0)
    assert isinstance(items.targets, Ragged)
    for index in range(len(items)):
        source, seen, asked = items.inputs["source"][index], items.inputs["target"][index], items.targets[index]
        assert asked.tolist() == source[-2:0:-1].tolist()
        assert seen.tolist() == [11, *asked.tolist()[:-1]]


def test_errors_name_reverse() -> None:
    with pytest.raises(TaskError, match="of reverse overlap"):
        Reverse(valid=Interval(1, 1))
