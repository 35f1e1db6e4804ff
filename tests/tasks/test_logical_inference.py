"""Logical inference: relations by truth tables written out, counts as in the published files."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pytest

from archlang.tasks.base import Split, digest
from archlang.tasks.logical_inference import RELATIONS, LogicalInference, read
from archlang.tasks.mistakes import TaskError
from archlang.types.statics import Interval

WORLDS = [dict(zip("abcdef", world, strict=True)) for world in product([False, True], repeat=6)]
SMALL = LogicalInference(draws=20_000)
Formula = str | tuple[str, "Formula"] | tuple["Formula", str, "Formula"]


def parse(words: list[str]) -> Formula:
    """Takes a formula off the front of the words."""
    if words[0] != "(":
        return words.pop(0)
    words.pop(0)
    if words[0] == "not":
        result: Formula = (words.pop(0), parse(words))
    else:
        left = parse(words)
        assert words.pop(0) == "("
        operator = words.pop(0)
        result = (left, operator, parse(words))
        assert words.pop(0) == ")"
    assert words.pop(0) == ")"
    return result


def true(formula: Formula, world: dict[str, bool]) -> bool:
    match formula:
        case str():
            return world[formula]
        case ("not", inner):
            return not true(inner, world)
        case (left, "and", right):
            return true(left, world) and true(right, world)
        case (left, "or", right):
            return true(left, world) or true(right, world)
    raise AssertionError(formula)


def operators(words: list[str]) -> int:
    return sum(word in ("and", "or", "not") for word in words)


@cache
def worlds(text: str) -> frozenset[int]:
    words = text.split()
    formula = parse(words)
    assert not words
    return frozenset(index for index, world in enumerate(WORLDS) if true(formula, world))


def relation(left: str, right: str) -> str:
    here, there, everywhere = worlds(left), worlds(right), frozenset(range(64))
    assert here not in (frozenset(), everywhere)
    assert there not in (frozenset(), everywhere)
    if here == there:
        return "="
    if here < there or here > there:
        return "<" if here < there else ">"
    if not here & there:
        return "^" if here | there == everywhere else "|"
    return "v" if here | there == everywhere else "#"


@cache
def made(task: LogicalInference, split: str, seed: int = 0) -> Split:
    return task.generate(split, seed)


def pairs(task: LogicalInference, split: str, seed: int = 0) -> list[tuple[str, str]]:
    items = made(task, split, seed)
    sides = [
        [" ".join(task.vocabulary[token] for token in items.inputs[side][index]) for index in range(len(items))]
        for side in ("left", "right")
    ]
    return list(zip(*sides, strict=True))


@pytest.mark.parametrize("split", SMALL.split_names())
def test_every_relation_holds_by_the_truth_table(split: str) -> None:
    items = made(SMALL, split)
    for index, (left, right) in enumerate(pairs(SMALL, split)[:1000]):
        assert relation(left, right) == RELATIONS[items.targets[index]]
        most = min(max(operators(left.split()), operators(right.split())), 12)
        assert most == items.groups["operators"][index]


def test_published_relations_agree_with_ours(published: Callable[[str], list[str]]) -> None:
    for count in (0, 3, 7, 12):
        for line in published(f"logical_inference/test{count}")[:150]:
            label, left, right = read(line)
            texts = [" ".join(SMALL.vocabulary[token] for token in side) for side in (left, right)]
            assert line == "\t".join([label, *texts])
            assert relation(*texts) == label


def test_there_are_as_many_of_each_number_of_operators_as_published(published: Callable[[str], list[str]]) -> None:
    whole = LogicalInference(train=Interval(0, 12), test=Interval(0, 12), draws=100_000)
    found = [made(whole, split).groups["operators"] for split in ("train", "valid", "test")]
    ours = np.bincount(np.concatenate(found), minlength=13)
    theirs = np.array(
        [sum(len(published(f"logical_inference/{part}{count}")) for part in ("train", "test")) for count in range(13)]
    )
    # A fifth of the draws. Pairs with few operators run out, so that more than a fifth of them is found.
    assert np.allclose(ours[5:], theirs[5:] / 5, rtol=0.09)
    assert ours[0] == theirs[0] == 36


def test_splits_are_disjoint_and_repeat_nothing() -> None:
    parts = [pairs(SMALL, split, seed % 2) for seed, split in enumerate(SMALL.split_names())]
    assert len(set().union(*parts)) == sum(map(len, parts))


def test_operators_are_in_their_ranges() -> None:
    for split, counts in (("train", range(7)), ("valid", range(7)), ("iid", range(7)), ("test", range(7, 13))):
        assert set(made(SMALL, split).groups["operators"].tolist()) <= set(counts)


def test_training_on_fewer_operators_leaves_the_test_as_it_is() -> None:
    fewer = LogicalInference(draws=20_000, train=Interval(0, 3))
    assert digest(made(fewer, "test")) == digest(made(SMALL, "test"))


def test_begin_and_end_stand_around_both_sides() -> None:
    framed = LogicalInference(draws=20_000, begin_end=True)
    assert pairs(framed, "test") == [(f"[B] {left} [E]", f"[B] {right} [E]") for left, right in pairs(SMALL, "test")]


def test_impossible_statics_are_refused() -> None:
    with pytest.raises(TaskError, match=r"test = 7\.\.13 is out of bounds"):
        LogicalInference(test=Interval(7, 13))
    with pytest.raises(TaskError, match="draws = 0 is out of bounds"):
        LogicalInference(draws=0)
