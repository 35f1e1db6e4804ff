"""Dyck strings are balanced and have the published lengths; their sets agree with a stack."""

import random

import numpy as np
import pytest

from archlang.tasks.dyck import Dyck, allowed
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.task import LossRule
from archlang.types.statics import Interval
from tests.goldens.files import reference_file
from tests.tasks.every import answers_of

SMALL = Dyck(train_size=2_000, valid_size=200, test_size=200)
OPEN, CLOSE = "([{<+ax", ")]}>-bo"


def expected_answer(text: str, pairs: int) -> list[set[str]]:
    """Returns the symbols that may follow each position, computed with a stack."""
    stack: list[str] = []
    sets = []
    for symbol in text:
        if symbol in OPEN:
            stack.append(CLOSE[OPEN.index(symbol)])
        else:
            assert stack.pop() == symbol
        sets.append({*OPEN[:pairs], *stack[-1:]})
    assert not stack
    return sets


@pytest.mark.parametrize("pairs", [1, 2, 3, 7])
def test_sets_agree_with_a_stack(pairs: int) -> None:
    task = Dyck(pairs=pairs, train_size=200, valid_size=20, test_size=20, distinct=False)
    for split in task.split_names():
        items = task.generate(split, 0)
        for index in range(len(items)):
            text = "".join(task.vocabulary[token] for token in items.inputs["x"][index])
            rows = answers_of(items)[index]
            assert [{task.vocabulary[token] for token in np.flatnonzero(row)} for row in rows] == expected_answer(
                text, pairs
            )


def test_sets_are_those_of_the_published_code() -> None:
    file = reference_file("panm", "dyck.npz")
    golden = np.load(file)
    assert "".join(golden["vocab"]) == "".join(Dyck().vocabulary)
    x = Ragged.of([["()[]".index(symbol) for symbol in text] for text in golden["strings"].tolist()])
    ours = Ragged(allowed(x, 2), x.offsets)
    for index, text in enumerate(golden["strings"].tolist()):
        assert (ours[index] == golden["y"][index, : len(text)].astype(bool)).all()
        assert not golden["y"][index, len(text) :].any()


def grown(rng: random.Random, size: int, longest: int) -> str:
    """Samples the published grammar symbol by symbol, with one kind of brackets, which do not influence lengths."""
    if size >= longest:
        return ""
    drawn = rng.random()
    if drawn < 0.5:
        text = "(" + grown(rng, size + 2, longest) + ")"
    elif drawn < 0.75:
        text = grown(rng, size, longest) + grown(rng, size, longest)
    else:
        return ""
    return text if len(text) <= longest else ""


def test_lengths_are_distributed_as_those_of_the_grammar() -> None:
    rng = random.Random(0)
    theirs = np.array([len(text) for text in (grown(rng, 0, 30) for _ in range(20_000)) if len(text) >= 2])
    task = Dyck(train=Interval(2, 30), test=(Interval(32, 40),), train_size=12_000, distinct=False)
    ours = task.generate("train", 0).inputs["x"].lengths
    assert abs(ours.mean() - theirs.mean()) < 0.3
    for length in (2, 4, 10, 20, 30):
        assert abs(np.mean(ours == length) - np.mean(theirs == length)) < 0.015


def test_the_published_sets_have_the_measured_lengths() -> None:
    # Of the published generator: 25 and 74 on average.
    items = Dyck().generate("train", 0)
    lengths = items.inputs["x"].lengths
    assert len(items) == 5_000
    assert 2 <= lengths.min() <= lengths.max() <= 50
    assert abs(lengths.mean() - 25) < 1
    tested = Dyck().generate("test", 0).inputs["x"].lengths
    assert 52 <= tested.min() <= tested.max() <= 100
    assert abs(tested.mean() - 74) < 2


def test_strings_are_distinct_by_default() -> None:
    x = SMALL.generate("train", 0).inputs["x"]
    assert len({x[index].tobytes() for index in range(len(x))}) == 2_000
    short = Dyck(train=Interval(2, 10), test=(Interval(12, 12),), train_size=3_000, test_size=3, distinct=False)
    x = short.generate("train", 0).inputs["x"]
    assert len({x[index].tobytes() for index in range(len(x))}) < 1_618


def test_each_range_of_test_lengths_has_its_items() -> None:
    task = Dyck(train=Interval(2, 20), test=(Interval(22, 22), Interval(40, 48)), test_size=30)
    items = task.generate("test", 0)
    lengths, groups = items.inputs["x"].lengths, items.groups["length"]
    assert np.unique(groups, return_counts=True)[1].tolist() == [30, 30]
    assert set(lengths[groups == 22].tolist()) == {22}
    assert 40 <= lengths[groups == 40].min() <= lengths[groups == 40].max() <= 48


def test_the_published_loss_is_the_default() -> None:
    assert Dyck().rule is LossRule.SQUARES
    assert Dyck(loss="entropy").rule is LossRule.ENTROPY
