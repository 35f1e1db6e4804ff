"""Simple arithmetic: values and depths against a slow parser, the published counts, the published distribution."""

import random
from collections import Counter

import numpy as np
import pytest

from archlang.tasks.arithmetic import Arithmetic
from archlang.types.statics import Interval
from tests.tasks.every import generated, replace, words_of

SMALL = Arithmetic(train_size=3_000, iid_size=400, valid_size=100, test_size=60, begin_end=False)


def read(text: str) -> tuple[int, int]:
    """Returns the value and the depth of an expression; every operation is in parentheses."""
    if len(text) == 1:
        return int(text), 0
    depth = 0
    for place, symbol in enumerate(text):
        depth += {"(": 1, ")": -1}.get(symbol, 0)
        if depth == 1 and symbol in "+*":
            (left, below), (right, beside) = read(text[1:place]), read(text[place + 1 : -1])
            value = left + right if symbol == "+" else left * right
            return value % 10, 1 + max(below, beside)
    raise AssertionError(text)


def texts(split: str) -> list[str]:
    return list(map("".join, words_of(SMALL, split)))


@pytest.mark.parametrize("split", SMALL.split_names())
def test_values_and_depths_of_short_items_agree_with_a_slow_parser(split: str) -> None:
    items = texts(split)
    assert max(map(len, items)) <= 50
    parsed = [read(text) for text in items]
    assert [value for value, _ in parsed] == np.asarray(generated(SMALL, split).targets).tolist()
    assert [depth for _, depth in parsed] == generated(SMALL, split).groups["depth"].tolist()


def test_the_published_counts_and_share_of_zeros() -> None:
    # Of the published 100,200 the 200 and 25,000 of each depth; here of fewer, which is quicker.
    task = Arithmetic()
    assert task.train_size == 100_200
    train = replace(task, train_size=8_200).generate("train", 0)
    assert np.bincount(train.groups["depth"]).tolist() == [0, 200, 2_000, 2_000, 2_000, 2_000]
    # About 26 % of the answers of the published train set are 0.
    assert abs(np.mean(train.targets == 0) - 0.26) < 0.02
    assert np.bincount(task.generate("valid", 0).groups["depth"]).tolist() == [0] * 6 + [1_000]
    assert np.bincount(task.generate("test", 0).groups["depth"]).tolist() == [0] * 7 + [500, 500]
    assert np.bincount(task.generate("iid", 0).groups["depth"]).tolist() == [0, 0, 250, 250, 250, 250]


def test_train_has_every_operation_on_two_digits() -> None:
    single = [
        text
        for text, depth in zip(texts("train"), generated(SMALL, "train").groups["depth"], strict=True)
        if depth == 1
    ]
    assert sorted(single) == sorted(f"({a}{op}{b})" for op in "+*" for a in range(10) for b in range(10))


def test_digits_and_operations_are_uniform() -> None:
    counts = Counter("".join(texts("train")))
    assert abs(counts["+"] / (counts["+"] + counts["*"]) - 0.5) < 0.02
    digits = np.array([counts[digit] for digit in "0123456789"])
    assert np.allclose(digits / digits.sum(), 0.1, atol=0.01)


def grown(rng: random.Random, probability: float, height: int) -> str:
    if height == 0 or rng.random() >= probability:
        return "0"
    return f"({grown(rng, probability, height - 1)}+{grown(rng, probability, height - 1)})"


def drawn(rng: random.Random, probability: float, low: int, high: int) -> str:
    """The published sampling: a tree that is too shallow becomes the right side of an operation."""
    text = grown(rng, probability, high)
    while read(text)[1] < low:
        text = f"({grown(rng, probability, high - 1)}+{text})"
    return text


@pytest.mark.parametrize(("split", "probability", "low", "high"), [("train", 0.2, 2, 5), ("test", 0.3, 7, 8)])
def test_lengths_have_the_distribution_of_one_by_one_sampling(
    split: str, probability: float, low: int, high: int
) -> None:
    rng = random.Random(0)
    theirs = [(len(text), read(text)[1]) for text in (drawn(rng, probability, low, high) for _ in range(6_000))]
    ours = generated(SMALL, split)
    depth = high
    expected = np.array([length for length, reached in theirs if reached == depth and length <= 50])
    lengths = ours.inputs["x"].lengths[ours.groups["depth"] == depth]
    assert abs(lengths.mean() - expected.mean()) < 4 * np.hypot(
        lengths.std() / len(lengths) ** 0.5, expected.std() / len(expected) ** 0.5
    )


def test_unbalanced_depths_keep_the_drawn_distribution() -> None:
    counts = np.bincount(Arithmetic(train_size=3_000, balanced=False).generate("train", 0).groups["depth"])
    assert counts.sum() == 3_000
    assert counts[1] == 200
    assert counts[2] > 2 * counts[3] > 4 * counts[4] > 0


def test_single_operations_are_only_in_train() -> None:
    task = Arithmetic(train=Interval(1, 1), valid=Interval(2, 2), test=Interval(3, 3), train_size=200)
    assert [len(task.generate(split, 0)) for split in ("train", "iid")] == [200, 0]


def test_ids_are_the_published_ones() -> None:
    assert "".join(SMALL.vocabulary) == "()*+0123456789"
    assert Arithmetic().vocabulary[14:] == ("[E]", "[B]")
