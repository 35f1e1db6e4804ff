"""Random numbers are the same everywhere, and splits that are drawn from one distribution share no item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.tasks.kit.drawing import (
    Drawing,
    Fingerprints,
    RandomStream,
    Seen,
    _logarithm,
    combine,
    draw_distinct,
    fingerprints,
    in_share,
    shared_rows,
    table_fingerprints,
)
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged, Split

# Bit for bit, so that no machine"s logarithm or square root can differ unnoticed.
NORMAL = ["0x1.6bafd51511479p-1", "0x1.92e95ca94b5c3p-1"]
EXPONENTIAL = ["0x1.855a598242e5cp+1", "0x1.d1165a1cbd2dbp-3"]


def test_the_stream_is_fixed() -> None:
    assert RandomStream("a task", 3).words(2).tolist() == [12485461900803927875, 3819894967639439393]
    assert RandomStream("a task", 3).below(1000, 4).tolist() == [676, 207, 188, 125]
    assert RandomStream("a task", 3).order(6).tolist() == [3, 2, 1, 4, 0, 5]
    assert RandomStream("a task", 3).real(1)[0] == 0.6768382458668306


def test_every_part_of_the_key_matters() -> None:
    keys: list[tuple[str | int, ...]] = [("a", 0), ("a", 1), ("b", 0), (0, "a"), ("a", 0, 0), ("a",)]
    assert len({RandomStream(*key).words(1)[0] for key in keys}) == len(keys)


def test_a_stream_does_not_depend_on_the_sizes_of_requests() -> None:
    at_once, in_parts = RandomStream("x"), RandomStream("x")
    assert at_once.words(10).tolist() == [*in_parts.words(3), *in_parts.words((7,))]


def test_integers_are_uniform() -> None:
    counts = np.bincount(RandomStream("even").below(10, 100_000), minlength=10)
    assert counts.sum() == 100_000
    assert np.abs(counts - 10_000).max() < 500


def test_each_number_may_have_its_own_bound() -> None:
    bounds = np.array([1, 2, 3] * 1000)
    drawn = RandomStream("bounds").below(bounds, 3000)
    assert (drawn < bounds).all()
    assert set(drawn[2::3].tolist()) == {0, 1, 2}


def test_real_numbers_fill_the_unit_interval() -> None:
    drawn = RandomStream("real").real(100_000)
    assert 0 <= drawn.min() < 0.001
    assert 0.999 < drawn.max() < 1
    assert abs(drawn.mean() - 0.5) < 0.005


def test_an_order_is_a_permutation() -> None:
    assert sorted(RandomStream("order").order(100).tolist()) == list(range(100))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(TaskError, match="the seed is -1"):
        RandomStream("x", -1)


def test_normal_numbers_are_fixed_and_normal() -> None:
    assert [number.hex() for number in RandomStream("normal").normal(2)] == NORMAL
    numbers = RandomStream("normal", 1).normal(200_001)
    assert abs(numbers.mean()) < 0.01
    assert abs(numbers.std() - 1) < 0.01
    shares = [float(np.mean(numbers < bound)) for bound in (-2, -1, 0, 1, 2)]
    assert np.allclose(shares, [0.0228, 0.1587, 0.5, 0.8413, 0.9772], atol=0.003)


def test_exponential_numbers_are_fixed_and_exponential() -> None:
    assert [number.hex() for number in RandomStream("exponential").exponential(2)] == EXPONENTIAL
    numbers = RandomStream("exponential", 1).exponential((400, 500))
    assert numbers.shape == (400, 500)
    assert numbers.min() >= 0
    assert abs(numbers.mean() - 1) < 0.01
    assert abs(np.mean(numbers > 2) - np.exp(-2)) < 0.003


def test_logarithms_agree_with_the_library_up_to_rounding() -> None:
    numbers = RandomStream("logarithm").real(10_000) + 1e-300
    assert np.allclose(_logarithm(numbers), np.log(numbers), rtol=1e-14, atol=1e-15)


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
    search = Drawing("test", "size", 600, "more values", window=3)
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
