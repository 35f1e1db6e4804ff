"""Fingerprints distinguish items and assign them to shares."""

import numpy as np

from archlang.tasks.kit.fingerprints import Patience, Seen, combine, fingerprints, in_share, table_fingerprints
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.random_stream import RandomStream


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


def test_patience_ends_when_a_window_brings_few_items() -> None:
    patience = Patience(wanted=600, window=3)
    assert not any(patience.is_over(brought) for brought in (0, 0, 2))
    assert not any(patience.is_over(brought) for brought in (1, 0))
    assert patience.is_over(0)
