"""Ragged sequences and their operations."""

import numpy as np
import pytest

from archlang.tasks.kit.ragged import Ragged, append, enclose, join, shift
from tests.tasks.every import rows_of as rows

WORDS = Ragged.of([[3, 1], [], [2], [5, 6, 7]])


def test_a_ragged_returns_its_sequences() -> None:
    assert rows(WORDS) == [[3, 1], [], [2], [5, 6, 7]]
    assert WORDS.lengths.tolist() == [2, 0, 1, 3]
    assert WORDS[-1].tolist() == [5, 6, 7]


def test_an_index_out_of_range_is_an_index_error() -> None:
    with pytest.raises(IndexError):
        WORDS[4]


def test_select_keeps_the_order_of_indices_and_masks() -> None:
    assert rows(WORDS.select([3, 0, 3])) == [[5, 6, 7], [3, 1], [5, 6, 7]]
    assert rows(WORDS.select(np.array([True, False, False, True]))) == [[3, 1], [5, 6, 7]]
    assert rows(WORDS.select([])) == []


def test_a_table_is_ragged_with_equal_lengths() -> None:
    assert rows(Ragged.table(np.array([[1, 2], [3, 4]]))) == [[1, 2], [3, 4]]


def test_enclose_adds_begin_and_end() -> None:
    assert rows(enclose(WORDS, begin=9, end=8)) == [[9, 3, 1, 8], [9, 8], [9, 2, 8], [9, 5, 6, 7, 8]]


def test_shift_prepends_begin_and_drops_the_last_target() -> None:
    targets = append(Ragged.of([[3, 1], [2]]), 8)
    assert rows(targets) == [[3, 1, 8], [2, 8]]
    assert rows(shift(targets, 9)) == [[9, 3, 1], [9, 2]]


def test_join_concatenates_parts() -> None:
    assert rows(join([WORDS, Ragged.of([[4]])])) == [*rows(WORDS), [4]]
    assert rows(join([])) == []


FEATURES = Ragged.of([[[0.5, 1.0]], [[2.0, -1.0], [0.0, 3.0]]], dtype=np.float32)


def test_features_are_selected_enclosed_and_joined_as_tokens() -> None:
    assert FEATURES.values.shape == (3, 2)
    assert FEATURES.select([1])[0].tolist() == [[2.0, -1.0], [0.0, 3.0]]
    assert enclose(FEATURES, begin=0, end=9)[0].tolist() == [[0.0, 0.0], [0.5, 1.0], [9.0, 9.0]]
    assert append(FEATURES, 9)[0].tolist() == [[0.5, 1.0], [9.0, 9.0]]
    assert join([FEATURES, FEATURES])[3].tolist() == FEATURES[1].tolist()


def test_of_bytes_returns_the_bytes_of_texts() -> None:
    assert rows(Ragged.of_bytes([b"ab", b"", b"c"])) == [[97, 98], [], [99]]
