"""Bucket sort answers with the sorted input, after the input."""

import pytest

from tests.tasks.every import answers_of, marks_of, page, replace

BucketSort = page("bucket_sort")

SMALL = BucketSort(train_size=1_000, valid_size=50, test_size=100)


@pytest.mark.parametrize("symbols", [2, 5])
@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_answer_is_the_sorted_input_at_the_answer_positions(split: str, symbols: int) -> None:
    items = replace(SMALL, symbols=symbols).generate(split, 0)
    for index in range(len(items)):
        row = items.inputs["x"][index].tolist()
        half = len(row) // 2
        assert row[half:] == [symbols] * half
        assert marks_of(items)[index].tolist() == [False] * half + [True] * half
        assert answers_of(items)[index][half:].tolist() == sorted(row[:half])
        assert max(row[:half]) < symbols
        assert items.groups["length"][index] == max(half // 50 * 50, 41 if split == "test" else 1)


def test_lengths_are_the_published_ones() -> None:
    assert set((SMALL.generate("train", 0).inputs["x"].lengths // 2).tolist()) == set(range(1, 41))
    assert (SMALL.generate("test", 0).inputs["x"].lengths // 2).min() >= 41
