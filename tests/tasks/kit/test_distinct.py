"""Splits that are drawn from one distribution share no item."""

import numpy as np
import pytest

from archlang.tasks.kit.distinct import draw_distinct
from archlang.tasks.kit.fingerprints import Fingerprints, fingerprints
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split


def drawn(split: str, size: int, values: int) -> list[tuple[int, ...]]:
    rng = RandomStream("test", split)

    def draw(count: int) -> tuple[Split, Fingerprints]:
        x = Ragged.table(rng.below(values, (count, 2)))
        return Split({"x": x}, np.zeros(count, dtype=np.int64)), fingerprints(x)

    items = draw_distinct("test", split, size, draw, 64, "more values")
    return [tuple(items.inputs["x"][index].tolist()) for index in range(len(items))]


def test_items_are_distinct_and_those_of_valid_are_not_in_train() -> None:
    train, valid = drawn("train", 60, 10), drawn("valid", 8, 10)
    assert (len(set(train)), len(set(valid))) == (60, 8)
    assert not set(train) & set(valid)


def test_a_split_without_items_has_its_fields() -> None:
    assert drawn("train", 0, 10) == []


def test_too_few_distinct_items_are_reported_with_their_number() -> None:
    with pytest.raises(TaskError, match=r"train_size = 50 is more than test can draw: it stopped at [2-9]\d? distinct"):
        drawn("train", 50, 3)
