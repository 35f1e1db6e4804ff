"""Word problems ask for the products of a group's elements."""

from itertools import permutations, product

import numpy as np
import pytest

from archlang.tasks.kit import lengths
from archlang.tasks.kit.split import Ragged
from tests.tasks.every import Drawn, marks_of, page

WordProblem = page("word_problem")


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lengths, "_BATCH_SYMBOLS", 1 << 14)


def even(images: tuple[int, ...]) -> bool:
    """Whether a permutation is a product of an even number of swaps."""
    order, swaps = list(images), 0
    for place in range(len(order)):
        while order[place] != place:
            other = order[place]
            order[place], order[other] = order[other], order[place]
            swaps += 1
    return swaps % 2 == 0


def elements(group: str) -> list[tuple[int, ...]]:
    """The elements in order: images of a permutation, or one number."""
    if "_x_" in group:
        return [(*a, *b) for a, b in product(*map(elements, group.split("_x_")))]
    size = int(group[1:])
    if group[0] == "z":
        return [(number,) for number in range(size)]
    return [images for images in permutations(range(size)) if group[0] == "s" or even(images)]


def multiplied(group: str, first: tuple[int, ...], then: tuple[int, ...]) -> tuple[int, ...]:
    """The product of two elements, from the definition: a thing goes where `first` sends it, and from there where
    `then` does."""
    if group == "a4_x_z5":
        return (*multiplied("a4", first[:4], then[:4]), *multiplied("z5", first[4:], then[4:]))
    if group[0] == "z":
        return ((first[0] + then[0]) % int(group[1:]),)
    return tuple(then[image] for image in first)


def table(group: str) -> list[list[int]]:
    """The number of the product of any two elements."""
    named = elements(group)
    numbers = {element: number for number, element in enumerate(named)}
    return [[numbers[multiplied(group, first, then)] for then in named] for first in named]


@pytest.mark.parametrize("group", ["z3", "z5", "s3", "s5", "a5", "z60", "a4_x_z5"])
def test_answers_are_the_products_so_far(group: str) -> None:
    products = table(group)
    task = WordProblem(group=group, length=9, test_length=(12,), train_size=30, valid_size=5, test_size=5)
    assert task.sizes == {"vocab": len(products), "classes": len(products)}
    for split in task.split_names():
        items = task.generate(split, 0)
        for index, length in enumerate(items.groups["length"]):
            words, answers = items.inputs["x"][index].tolist(), items.targets[index].tolist()
            assert len(words) == length
            assert answers[0] == words[0]
            assert answers[1:] == [products[state][word] for state, word in zip(answers[:-1], words[1:], strict=True)]


@pytest.mark.parametrize("group", ["s3", "s5", "a5", "a4_x_z5"])
def test_every_product_of_two_elements_is_that_of_the_group(group: str) -> None:
    products = np.array(table(group))
    pairs = list(product(range(len(products)), repeat=2))
    items = WordProblem(group=group).items(Drawn([number for pair in pairs for number in pair]), np.full(len(pairs), 2))
    assert isinstance(items.targets, Ragged)
    assert items.targets.values[1::2].tolist() == products.reshape(-1).tolist()


def test_the_words_of_s3_are_images() -> None:
    assert [tuple(int(image) - 1 for image in word) for word in WordProblem().vocabulary] == elements("s3")


def test_only_the_last_product_counts_where_it_alone_is_revealed() -> None:
    task = WordProblem(length=7, test_length=(), reveal="end", train_size=10, valid_size=5)
    assert task.split_names() == ("train", "valid")
    marks = marks_of(task.generate("train", 0))
    assert [marks[index].tolist() for index in range(len(marks))] == [[False] * 6 + [True]] * 10


def test_elements_are_uniform() -> None:
    x = WordProblem(length=10, train_size=10_000).generate("train", 0).inputs["x"].values
    assert np.allclose(np.bincount(x) / len(x), 1 / 6, rtol=0.03)
