"""Modular arithmetic agrees with Python."""

import numpy as np
import pytest

from tests.tasks.every import page, replace

ModularArithmetic = page("modular_arithmetic")

SMALL = ModularArithmetic(train_size=2_000, valid_size=50, test_size=200, begin_end=False)


@pytest.mark.parametrize("modulus", [2, 5, 13])
@pytest.mark.parametrize("split", SMALL.split_names())
def test_values_agree_with_python(split: str, modulus: int) -> None:
    task = replace(SMALL, modulus=modulus)
    items = task.generate(split, 0)
    for index in range(len(items)):
        text = "".join(task.vocabulary[token] for token in items.inputs["x"][index])
        assert set(text[1::2]) <= set("+-*") if modulus < 10 else True
        assert items.targets[index] == eval(text) % modulus  # of digits and operators


def test_lengths_are_odd_and_even_ones_are_reduced() -> None:
    lengths = SMALL.generate("train", 0).inputs["x"].lengths
    assert set(lengths.tolist()) == set(range(1, 40, 2))
    assert np.mean(lengths == 39) == pytest.approx(2 / 40, abs=0.02)
    assert SMALL.generate("test", 0).inputs["x"].lengths.min() >= 41


def test_begin_and_end_enclose_the_input() -> None:
    task = replace(SMALL, begin_end=True)
    row = task.generate("train", 0).inputs["x"][0]
    assert (task.vocabulary[row[0]], task.vocabulary[row[-1]]) == ("[B]", "[E]")
