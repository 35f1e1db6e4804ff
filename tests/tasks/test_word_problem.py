"""Word problems ask for the products of a group's elements."""

from itertools import permutations, product

import numpy as np
import pytest

from archlang.tasks.word_problem import WordProblem
from tests.tasks.every import marks_of

SIZES = {"z3": 3, "s3": 6, "s5": 120, "a5": 60, "z60": 60, "a4_x_z5": 60}


def even(images: str) -> bool:
    """Whether a permutation is a product of an even number of swaps."""
    order, swaps = [int(image) - 1 for image in images], 0
    for place in range(len(order)):
        while order[place] != place:
            other = order[place]
            order[place], order[other] = order[other], order[place]
            swaps += 1
    return swaps % 2 == 0


def multiplied(group: str, first: str, then: str) -> str:
    """The product of two elements by their names, from the definition: a thing goes where `first` sends it, and from
    there where `then` does."""
    if group == "a4_x_z5":
        pairs = zip(("a4", "z5"), first.split(), then.split(), strict=True)
        return " ".join(multiplied(*pair) for pair in pairs)
    if group[0] == "z":
        return str((int(first) + int(then)) % int(group[1:]))
    return "".join(then[int(image) - 1] for image in first)


@pytest.mark.parametrize("group", SIZES)
def test_answers_are_the_products_so_far(group: str) -> None:
    task = WordProblem(group=group, length=9, test_length=(12,), train_size=30, valid_size=5, test_size=5)
    assert task.sizes == {"vocab": SIZES[group], "classes": SIZES[group]}
    for split in task.split_names():
        items = task.generate(split, 0)
        for index, length in enumerate(items.groups["length"]):
            words = [task.vocabulary[token] for token in items.inputs["x"][index]]
            answers = [task.vocabulary[token] for token in items.targets[index]]
            assert len(words) == length
            assert answers[0] == words[0]
            assert answers[1:] == [multiplied(group, *pair) for pair in zip(answers[:-1], words[1:], strict=True)]


@pytest.mark.parametrize("group", SIZES)
def test_the_elements_are_those_of_the_group(group: str) -> None:
    names = {"s3": 3, "s5": 5, "a5": 5}
    expected = {str(number) for number in range(SIZES[group])}
    if group == "a4_x_z5":
        expected = {f"{a} {b}" for a, b in product(map("".join, permutations("1234")), range(5)) if even(a)}
    elif group in names:
        images = map("".join, permutations("12345"[: names[group]]))
        expected = {name for name in images if group[0] == "s" or even(name)}
    vocabulary = WordProblem(group=group).vocabulary
    assert set(vocabulary) == expected
    assert len(vocabulary) == SIZES[group]


def test_only_the_last_product_counts_where_it_alone_is_revealed() -> None:
    task = WordProblem(length=7, test_length=(), reveal="end", train_size=10, valid_size=5)
    assert task.split_names() == ("train", "valid")
    marks = marks_of(task.generate("train", 0))
    assert [marks[index].tolist() for index in range(len(marks))] == [[False] * 6 + [True]] * 10


def test_elements_are_uniform() -> None:
    x = WordProblem(length=10, train_size=10_000).generate("train", 0).inputs["x"].values
    assert np.allclose(np.bincount(x) / len(x), 1 / 6, rtol=0.03)
