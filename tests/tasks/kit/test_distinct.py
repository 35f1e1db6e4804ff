"""Splits that are drawn from one distribution share no item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.tasks.kit.distinct import (
    Fingerprints,
    Search,
    Seen,
    combine,
    draw_distinct,
    fingerprints,
    in_share,
    shared_rows,
    table_fingerprints,
)
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


def test_a_search_ends_when_a_window_brings_few_items() -> None:
    search = Search("test", "size", 600, "more values", window=3)
    for found in (0, 0, 2, 1, 0):
        search.take(found)
    with pytest.raises(TaskError, match="size = 600 is more than test can draw: it stopped at 3 distinct items"):
        search.take(0)


def test_fingerprints_are_fixed() -> None:
    assert fingerprints(Ragged.of([[1, 2, 3], []])).tolist() == [12376083948567829140, 0]


def test_different_sequences_differ() -> None:
    rows = [[], [0], [0, 0], [1], [0, 1], [1, 0], [1, 0, 0], [2, 1, 0], [0, 1, 2]]
    assert len(np.unique(fingerprints(Ragged.of(rows)))) == len(rows)


def test_table_fingerprints_equal_those_of_a_ragged() -> None:
    rows = RandomStream("rows").below(7, (50, 9))
    assert table_fingerprints(rows).tolist() == fingerprints(Ragged.table(rows)).tolist()


def test_positions_with_minus_one_do_not_count() -> None:
    assert table_fingerprints(np.array([[4, 2, -1, -1]])).tolist() == fingerprints(Ragged.of([[4, 2]])).tolist()


def test_pairs_are_ordered() -> None:
    prints = fingerprints(Ragged.of([[1], [2]]))
    assert combine(prints, prints[::-1])[0] != combine(prints[::-1], prints)[0]


def test_shares_partition_all_items() -> None:
    prints = fingerprints(Ragged.table(RandomStream("rows").below(10, (20_000, 12))))
    parts = [in_share(prints, low, high) for low, high in ((0.0, 0.25), (0.25, 0.3), (0.3, 1.0))]
    assert (np.sum(parts, axis=0) == 1).all()
    assert [round(part.mean(), 2) for part in parts] == [0.25, 0.05, 0.7]


def test_an_item_is_fresh_once() -> None:
    seen = Seen()
    assert seen.fresh(np.array([5, 3, 5, 9], dtype=np.uint64)).tolist() == [True, True, False, True]
    assert seen.fresh(np.array([3, 4, 10, 4], dtype=np.uint64)).tolist() == [False, True, True, False]
    assert len(seen) == 5


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 2), max_size=3), st.integers(0, 1)), min_size=1, max_size=20), st.data()
)
def test_shared_rows_are_those_with_equal_inputs(rows: list[tuple[list[int], int]], data: st.DataObject) -> None:
    def of(items: list[tuple[list[int], int]]) -> Split:
        numbers = Ragged.table(np.asarray([[number] for _, number in items], np.float32))
        features = Ragged(numbers.values.reshape(-1, 1) / 3, numbers.offsets)
        return Split({"x": Ragged.of([tokens for tokens, _ in items]), "y": features}, np.arange(len(items)))

    count = data.draw(st.integers(1, len(rows)))
    assert shared_rows(of(rows[:count]), of(rows)) == count
    expected = sum(row in rows[count - 1 :] for row in rows)
    assert shared_rows(of(rows), of(rows[count - 1 :])) == expected
