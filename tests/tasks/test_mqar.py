"""Associative recall scores the value of each repeated key, and nothing else."""

from collections import Counter

import numpy as np
import pytest

from archlang.tasks.kit.split import digest
from archlang.tasks.mqar import Mqar
from archlang.tasks.mqar_variants import MqarVariants
from tests.tasks.every import answers_of, marks_of, replace, vars_of

SMALL = Mqar(
    words=64, length=20, pairs=3, test_length=(20, 40), test_pairs=(4, 8), train_size=500, valid_size=50, test_size=50
)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_answers_are_the_values_of_the_keys(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        row, pairs = items.inputs["x"][index].tolist(), int(items.groups["pairs"][index])
        assert len(row) == items.groups["length"][index]
        keys, values = row[0 : 2 * pairs : 2], row[1 : 2 * pairs : 2]
        assert len(set(keys)) == len(set(values)) == pairs
        assert 1 <= min(keys) <= max(keys) < 32 <= min(values) <= max(values) < 64
        asked = np.flatnonzero(marks_of(items)[index])
        assert {row[place]: answers_of(items)[index][place] for place in asked} == dict(zip(keys, values, strict=True))
        assert len(asked) == pairs
        assert all(place >= 2 * pairs and place % 2 == 0 for place in asked)


def varied(**statics: object) -> MqarVariants:
    return MqarVariants(**{**vars_of(SMALL), "more_length": (), "more_pairs": (), **statics})


def test_the_published_mixture_has_several_lengths_and_pairs() -> None:
    task = varied(more_length=(24, 40, 40), more_pairs=(4, 2, 8), more_size=30)
    for split, sizes in (("train", [500, 30, 30, 30]), ("valid", [50] * 4)):
        groups = task.generate(split, 0).groups
        cells = zip(groups["length"].tolist(), groups["pairs"].tolist(), strict=True)
        assert Counter(cells) == dict(zip([(20, 3), (24, 4), (40, 2), (40, 8)], sizes, strict=True))
    assert digest(task.generate("test", 0)) == digest(SMALL.generate("test", 0))


def test_the_value_that_an_update_gives_counts() -> None:
    task = varied(length=24, updates=2, test_pairs=(3, 8), test_length=(24, 40))
    chosen = Counter[int]()
    for split in task.split_names():
        items = task.generate(split, 0)
        for index in range(len(items)):
            row, pairs = items.inputs["x"][index].tolist(), int(items.groups["pairs"][index])
            facts = list(zip(row[0 : 2 * pairs + 4 : 2], row[1 : 2 * pairs + 4 : 2], strict=True))
            of = dict(facts[:pairs])
            assert len({key for key, _ in facts[pairs:]}) == 2
            assert all(32 <= value < 64 and of[key] != value for key, value in facts[pairs:])
            asked = np.flatnonzero(marks_of(items)[index])
            assert min(asked) >= 2 * len(facts)
            assert {row[place]: answers_of(items)[index][place] for place in asked} == {**of, **dict(facts[pairs:])}
            chosen.update([*of].index(key) for key, _ in facts[pairs:] if pairs == 3)
    assert all(count == pytest.approx(sum(chosen.values()) / 3, rel=0.12) for count in chosen.values())


def test_neither_half_of_a_compound_key_determines_a_value() -> None:
    task = varied(length=30, pairs=4, compound=True, test_pairs=(5, 9), test_length=(30, 54))
    for split in task.split_names():
        items = task.generate(split, 0)
        for index in range(len(items)):
            row, pairs = items.inputs["x"][index].tolist(), int(items.groups["pairs"][index])
            facts = [tuple(row[place : place + 3]) for place in range(0, 3 * pairs, 3)]
            of = {(first, second): value for first, second, value in facts}
            assert len(of) == len(set(of.values())) == pairs
            assert all(1 <= first < 21 <= second < 42 <= value < 64 for first, second, value in facts)
            halves = [len({key[half] for key in of}) for half in (0, 1)]
            side = {4: 2, 5: 3, 9: 3}[pairs]
            assert halves == [side, side] if side**2 == pairs else max(halves) <= side
            asked = np.flatnonzero(marks_of(items)[index])
            assert {(row[at - 1], row[at]): answers_of(items)[index][at] for at in asked} == of
            assert all(at >= 3 * pairs and at % 3 == 1 for at in asked)


def test_test_combines_its_lengths_with_their_pairs() -> None:
    groups = SMALL.generate("test", 0).groups
    assert list(zip(groups["length"][::50].tolist(), groups["pairs"][::50].tolist(), strict=True)) == [(20, 4), (40, 8)]


def test_without_test_lengths_there_is_no_test_split() -> None:
    assert replace(SMALL, test_length=(), test_pairs=()).split_names() == ("train", "valid")


def test_keys_and_values_are_uniform() -> None:
    task = replace(SMALL, train_size=20_000)
    x = task.generate("train", 0).inputs["x"].values.reshape(-1, 20)
    keys, values = np.bincount(x[:, 0:6:2].ravel(), minlength=32)[1:], np.bincount(x[:, 1:6:2].ravel())[32:]
    for counts in (keys, values):
        assert np.allclose(counts / counts.sum(), 1 / len(counts), rtol=0.12)
    first = np.bincount(x[:, 0], minlength=32)[1:32]
    assert np.allclose(first / first.sum(), 1 / 31, rtol=0.2), "no place has keys of its own"


def test_gaps_follow_the_power_law() -> None:
    """Compares with successive sampling from the same law."""
    task = Mqar(words=64, length=28, pairs=2, train_size=20_000, test_length=(), test_pairs=())
    items = task.generate("train", 0)
    x, scored = items.inputs["x"].values.reshape(-1, 28), items.scored
    assert scored is not None
    marks = scored.values.reshape(-1, 28)
    first = np.array([np.flatnonzero((row == row[0]) & mark)[0] for row, mark in zip(x, marks, strict=True)])
    weights = np.arange(1, 13) ** (0.01 - 1.0)
    weights /= weights.sum()
    # The first key's gap is the first one that is drawn.
    counts = np.bincount((first - 4) // 2, minlength=12) / len(first)
    assert np.allclose(counts, weights, atol=0.012)
    second = np.array([np.flatnonzero((row == row[2]) & mark)[0] for row, mark in zip(x, marks, strict=True)])
    after = np.array([sum(weights[i] * weights[j] / (1 - weights[i]) for i in range(12) if i != j) for j in range(12)])
    assert np.allclose(np.bincount((second - 4) // 2, minlength=12) / len(second), after, atol=0.012)


def test_with_power_one_gaps_are_uniform() -> None:
    task = Mqar(words=64, length=20, pairs=1, power=1.0, train_size=20_000, test_length=(), test_pairs=())
    scored = task.generate("train", 0).scored
    assert scored is not None
    shares = scored.values.reshape(-1, 20).mean(axis=0)
    assert np.allclose(shares[2::2], 1 / 9, atol=0.01)
