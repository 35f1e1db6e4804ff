"""Logical inference: relations against truth tables, and the published counts."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.task import spell
from archlang.tasks.logical_inference import RELATIONS, LogicalInference, read
from archlang.types.statics import Interval
from tests.tasks.conftest import Offer
from tests.tasks.every import generated, words_of

SMALL = LogicalInference(draws=20_000)


# The worlds in which each variable is true, as bits.
TRUTHS = {
    name: sum(1 << index for index, world in enumerate(product([False, True], repeat=6)) if world[place])
    for place, name in enumerate("abcdef")
}
EVERYWHERE = (1 << 64) - 1


def truths(words: list[str]) -> int:
    """Removes the formula at the front of the words, and returns the worlds in which it is true."""
    word = words.pop(0)
    if word != "(":
        return TRUTHS[word]
    if words[0] == "not":
        words.pop(0)
        result = EVERYWHERE ^ truths(words)
    else:
        left = truths(words)
        assert words.pop(0) == "("
        operator, right = words.pop(0), truths(words)
        result = {"and": left & right, "or": left | right}[operator]
        assert words.pop(0) == ")"
    assert words.pop(0) == ")"
    return result


def relation(*texts: str) -> str:
    sides = [text.split() for text in texts]
    here, there = map(truths, sides)
    assert sides == [[], []]
    assert not {here, there} & {0, EVERYWHERE}
    if here == there:
        return "="
    if here & there in (here, there):
        return "<" if here & there == here else ">"
    if not here & there:
        return "^" if here | there == EVERYWHERE else "|"
    return "v" if here | there == EVERYWHERE else "#"


def operators(words: list[str]) -> int:
    return sum(word in ("and", "or", "not") for word in words)


def pairs(task: LogicalInference, split: str) -> list[tuple[str, str]]:
    left, right = (map(" ".join, words_of(task, split, field=side)) for side in ("left", "right"))
    return list(zip(left, right, strict=True))


@pytest.mark.parametrize("split", SMALL.split_names())
def test_every_relation_holds_by_the_truth_table(split: str) -> None:
    items = generated(SMALL, split)
    for index, (left, right) in enumerate(pairs(SMALL, split)[:1000]):
        assert relation(left, right) == RELATIONS[items.targets[index]]
        most = min(max(operators(left.split()), operators(right.split())), 12)
        assert most == items.groups["operators"][index]


def test_published_relations_agree_with_ours(published: Callable[[str], list[str]]) -> None:
    for count in (0, 3, 7, 12):
        for line in published(f"logical_inference/test{count}")[:150]:
            number, *sides = read(line)
            texts = [" ".join(side) for side in sides]
            assert line == "\t".join([RELATIONS[number], *texts])
            assert relation(*texts) == RELATIONS[number]


def test_the_numbers_of_pairs_per_operator_count_are_the_published_ones(published: Callable[[str], list[str]]) -> None:
    all_counts = LogicalInference(train=Interval(0, 12), test=Interval(0, 12), draws=100_000)
    counts = [generated(all_counts, split).groups["operators"] for split in ("train", "valid", "test")]
    ours = np.bincount(np.concatenate(counts), minlength=13)
    theirs = np.array(
        [sum(len(published(f"logical_inference/{part}{count}")) for part in ("train", "test")) for count in range(13)]
    )
    # A fifth of the draws. Pairs with few operators run out, so that more than a fifth of them is found.
    assert np.allclose(ours[5:], theirs[5:] / 5, rtol=0.09)
    assert ours[0] == theirs[0] == 36


def test_begin_and_end_enclose_both_sides() -> None:
    framed = LogicalInference(draws=20_000, begin_end=True)
    assert pairs(framed, "test") == [(f"[B] {left} [E]", f"[B] {right} [E]") for left, right in pairs(SMALL, "test")]


@pytest.mark.slow
def test_every_published_relation_is_reproduced(published_bytes: Callable[[str], bytes], offer: Offer) -> None:
    """Covers all 249,069 pairs."""
    names = [f"logical_inference/{part}{count}" for part in ("train", "test") for count in range(13)]
    offer({name: published_bytes(name) for name in names})
    task = LogicalInference(data="files", train=Interval(0, 12), test=Interval(0, 12))
    seen = 0
    for split in ("train", "valid", "test"):
        items = task.generate(split, 0)
        for index in range(len(items)):
            left, right = (spell(task, items.inputs[side][index]) for side in ("left", "right"))
            assert relation(left, right) == RELATIONS[items.targets[index]]
            most = max(operators(left.split()), operators(right.split()))
            assert min(most, 12) == items.groups["operators"][index]
        seen += len(items)
    assert seen == 249_069


@pytest.mark.slow
def test_published_splits_have_the_sizes_of_the_papers(
    published_bytes: Callable[[str], bytes], published: Callable[[str], list[str]], offer: Offer
) -> None:
    names = [f"logical_inference/train{count}" for count in range(7)]
    names += [f"logical_inference/test{count}" for count in range(13)]
    offer({name: published_bytes(name) for name in names})
    task = LogicalInference(data="files")
    splits = {split: task.generate(split, 0) for split in task.split_names()}
    assert {split: len(items) for split, items in splits.items()} == {
        "train": 121_977, "valid": 13_552, "iid": 23_922, "test": 13_445,
    }  # fmt: skip
    sizes = [np.bincount(splits[split].groups["operators"], minlength=13) for split in ("iid", "test")]
    assert sum(sizes).tolist() == [6, 410, 2198, 4104, 5361, 6027, 5816, 4707, 3347, 2230, 1444, 864, 853]  # type: ignore[union-attr] # not 0
    # The tenth line of all, which is in the second file, is the first to validate.
    label, left, right = published("logical_inference/train0")[9].split("\t")
    valid = splits["valid"]
    assert [spell(task, valid.inputs[side][0]) for side in ("left", "right")] == [left, right]
    assert RELATIONS[valid.targets[0]] == label


def test_the_error_names_a_malformed_line(offer: Offer) -> None:
    offer({"logical_inference/train0": "=\ta\ta\n=\ta\tg\n"})
    with pytest.raises(TaskError, match="line 2 of logical_inference/train0"):
        LogicalInference(data="files", train=Interval(0, 0)).generate("train", 0)
