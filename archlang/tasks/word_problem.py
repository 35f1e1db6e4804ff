"""The word problem of a finite group: multiply the elements of a sequence, from left to right.

Merrill et al. (2024), The Illusion of State in State-Space Models; the groups also of Siems et al. (2025).

>>> task = WordProblem(length=5, train_size=10, valid_size=9, test_size=9)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0])
('132 213 132 312 231', '132 231 321 213 321')
"""

from collections.abc import Collection, Mapping
from functools import cache
from itertools import combinations, permutations

import numpy as np

from archlang.tasks.kit.drawing import DISJOINT_SHARES, Drawing, RandomStream, table_fingerprints
from archlang.tasks.kit.split import Integers, Ragged, Split, join_splits
from archlang.tasks.kit.task import Kind, ShippedTask, Unit

_BATCH_SYMBOLS = 1 << 20


class WordProblem(ShippedTask):
    group: str
    length: int
    test_length: tuple[int, ...]
    reveal: str

    kind = Kind.TAGGING
    breakdown = "length"
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return _names_and_products(self.group)[0]

    class_names = vocabulary

    def split_names(self) -> tuple[str, ...]:
        return ("train", "valid", *(("test",) if self.test_length else ()))

    def group_values(self, split: str) -> Mapping[str, Collection[int]]:
        return {"length": self._lengths(split)}

    def make(self, split: str, seed: int) -> Split:
        return join_splits([self._draw(split, length, seed) for length in self._lengths(split)])

    def _lengths(self, split: str) -> tuple[int, ...]:
        return self.test_length if split == "test" else (self.length,)

    def _draw(self, split: str, length: int, seed: int) -> Split:
        size, products = self.size(split), _names_and_products(self.group)[1]
        rng = RandomStream("word_problem", self.group, split, length, seed)
        search = Drawing(self.name, f"{split}_size", size, "choose longer sequences", share=DISJOINT_SHARES[split])
        rows = np.empty((size, length), dtype=np.uint8)
        while search.missing:
            batch = rng.below(len(products), (max(1, _BATCH_SYMBOLS // length), length)).astype(np.uint8)
            done, fresh = size - search.missing, search.pick(table_fingerprints(batch))
            rows[done : done + len(fresh)] = batch[fresh]
        answers = rows.copy()
        for place in range(1, length):
            answers[:, place] = products[answers[:, place - 1], rows[:, place]]
        scored = np.ones_like(rows, dtype=np.bool_)
        scored[:, :-1] = self.reveal == "every"
        groups = {"length": np.full(size, length)}
        return Split({"x": Ragged.table(rows)}, Ragged.table(answers), Ragged.table(scored), groups)


@cache
def _names_and_products(group: str) -> tuple[tuple[str, ...], Integers]:
    """Returns the names of a group's elements, and the number of the product of any two: first one, then the other."""
    names, products = [""], np.zeros((1, 1), dtype=np.int64)
    for factor in group.split("_x_"):
        more, own = _factor(factor[0], int(factor[1:]))
        names = [f"{name} {other}".strip() for name in names for other in more]
        products = (len(own) * products[:, None, :, None] + own[:, None]).reshape(len(names), len(names))
    return tuple(names), products


def _factor(kind: str, size: int) -> tuple[list[str], Integers]:
    if kind == "z":
        numbers = np.arange(size)
        return [str(number) for number in numbers], (numbers[:, None] + numbers) % size
    images = [image for image in permutations(range(size)) if kind == "s" or _is_even(image)]
    places = {image: place for place, image in enumerate(images)}
    products = [[places[tuple(then[place] for place in first)] for then in images] for first in images]
    return ["".join(str(place + 1) for place in image) for image in images], np.array(products)


def _is_even(image: tuple[int, ...]) -> bool:
    return sum(before > after for before, after in combinations(image, 2)) % 2 == 0
