"""Parity counts ones, at every length."""

import numpy as np
import pytest

from tests.tasks.every import page, replace

Parity = page("parity")

SMALL = Parity(train_size=2_000, valid_size=50, test_size=300)


@pytest.mark.parametrize("split", SMALL.split_names())
@pytest.mark.parametrize("begin_end", [True, False])
def test_odd_numbers_of_ones_are_odd(split: str, begin_end: bool) -> None:
    items = replace(SMALL, begin_end=begin_end).generate(split, 0)
    for index in range(len(items)):
        row = items.inputs["x"][index].tolist()
        if begin_end:
            assert (row[0], row[-1]) == (3, 2)
        bits = row[1:-1] if begin_end else row
        assert set(bits) <= {0, 1}
        assert items.targets[index] == bits.count(1) % 2
        shortest = 41 if split == "test" else 1
        assert items.groups["length"][index] == max(len(bits) // 50 * 50, shortest)


def test_lengths_are_the_published_ones_and_uniform() -> None:
    lengths = SMALL.generate("train", 0).inputs["x"].lengths - 2
    counts = np.bincount(lengths, minlength=41)
    assert counts[0] == 0
    assert len(counts) == 41
    assert np.allclose(counts[1:], 50, atol=30)
    tested = SMALL.generate("test", 0).inputs["x"].lengths - 2
    assert 41 <= tested.min() < 60
    assert 480 < tested.max() <= 500


def test_train_and_valid_have_one_distribution_and_different_items() -> None:
    train, valid = (replace(SMALL, train_size=50).generate(split, 0).inputs["x"] for split in ("train", "valid"))
    assert train.values.tolist() != valid.values.tolist()
