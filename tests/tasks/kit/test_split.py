"""Splits: their parts, digests and forms."""

import numpy as np
import pytest

from archlang.tasks.kit.split import Ragged, Split, TargetForm, append, digest, enclose, join, join_splits, shift
from archlang.tasks.kit.task import Kind
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


WORDS = Ragged.of([[3, 1], [], [2], [5, 6, 7]])
FEATURES = Ragged.of([[[0.5, 1.0]], [[2.0, -1.0], [0.0, 3.0]]], dtype=np.float32)


def split() -> Split:
    return Split(
        {"x": WORDS}, WORDS, Ragged(WORDS.values > 2, WORDS.offsets), {"length": np.array([2, 0, 1, 3], dtype=np.int64)}
    )


def test_of_parts_is_the_inverse_of_parts() -> None:
    back = Split.of_parts(split().parts())
    assert digest(back) == digest(split())
    assert list(back.inputs) == ["x"]


def test_selecting_items_selects_all_their_parts() -> None:
    part = split().select([3, 0])
    assert rows(part.inputs["x"]) == [[5, 6, 7], [3, 1]]
    assert isinstance(part.targets, Ragged)
    assert rows(part.targets) == [[5, 6, 7], [3, 1]]
    assert part.scored is not None
    assert rows(part.scored) == [[True, True, True], [True, False]]
    assert part.groups["length"].tolist() == [3, 2]


def test_joined_splits_have_all_items() -> None:
    both = join_splits([split(), split()])
    assert len(both) == 8
    assert digest(both.select(np.arange(4, 8))) == digest(split())


def test_digests_detect_every_difference() -> None:
    original = split()
    others = [
        Split({"y": WORDS}, WORDS, original.scored, original.groups),
        Split({"x": WORDS}, WORDS, None, original.groups),
        Split({"x": WORDS}, WORDS, original.scored, {}),
        Split({"x": WORDS}, original.groups["length"], original.scored, original.groups),
        Split({"x": Ragged(WORDS.values, np.array([0, 1, 2, 3, 6]))}, WORDS, original.scored, original.groups),
    ]
    assert len({digest(each) for each in [original, *others]}) == 6


def test_the_form_follows_from_the_targets() -> None:
    x = Ragged.of([[1], [2, 3]])
    classes, spans = np.array([0, 1], dtype=np.int64), np.array([[0, 0], [0, 1]], dtype=np.int64)
    sets = Ragged(np.zeros((3, 4), dtype=np.bool_), x.offsets)
    numbers = Ragged(np.zeros((3, 4), dtype=np.float32), x.offsets)
    forms = [Split({"x": x}, targets).form for targets in (classes, x, sets, spans, numbers)]
    forms.append(Split({"x": x}, x, points_at="x").form)
    assert forms == [
        TargetForm.CLASSES, TargetForm.POSITIONS, TargetForm.SETS, TargetForm.SPANS, TargetForm.NUMBERS,
        TargetForm.POINTERS,
    ]  # fmt: skip
    assert {kind.form for kind in Kind} == set(TargetForm)


def test_a_split_keeps_the_field_that_its_targets_point_at() -> None:
    original = Split({"x": WORDS, "y": WORDS}, WORDS, points_at="y")
    assert Split.of_parts(original.parts()).points_at == "y"
    assert join_splits([original, original]).select([3]).points_at == "y"
    assert digest(original) != digest(Split({"x": WORDS, "y": WORDS}, WORDS))


def test_a_split_keeps_features_sets_and_notes_and_the_order_of_its_fields() -> None:
    x = Ragged.of([[1], [2, 3]])
    original = Split(
        {"source": x, "features": FEATURES},
        Ragged(np.eye(3, dtype=np.bool_), x.offsets),
        notes={"text": Ragged.of([[65], [66]])},
    )
    back = Split.of_parts(original.parts())
    assert list(back.inputs) == ["source", "features"]
    assert digest(back) == digest(original)
    part = join_splits([original, original]).select([3])
    assert part.notes["text"][0].tolist() == [66]
    assert part.inputs["features"][0].tolist() == FEATURES[1].tolist()
    assert isinstance(part.targets, Ragged)
    assert part.targets[0].tolist() == [[False, True, False], [False, False, True]]
