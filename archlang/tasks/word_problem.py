"""The word problem of a finite group: multiply the elements of a sequence, from left to right.

Merrill et al. (2024), The Illusion of State in State-Space Models; the groups also of Siems et al. (2025).

>>> task = WordProblem(length=5, train_size=10, valid_size=9, test_size=9)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0])
('132 213 132 312 231', '132 231 321 213 321')
"""

from functools import cache
from itertools import combinations, permutations

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.lengths import DistinctItems, random_symbols
from archlang.tasks.kit.split import Integers, Ragged, Split, ranges
from archlang.tasks.kit.task import Kind, Unit


class WordProblem(DistinctItems):
    group: str
    reveal: str

    kind = Kind.TAGGING
    unit = Unit.POSITION
    metrics = ("accuracy", "sequence_accuracy")

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return _names_and_products(self.group)[0]

    class_names = vocabulary

    @property
    def key(self) -> str:
        return self.group

    def items(self, rng: RandomStream, lengths: Integers) -> Split:
        products = _names_and_products(self.group)[1]
        x = random_symbols(rng, len(products), lengths)
        answers, states = np.empty_like(x.values), np.zeros(len(lengths), dtype=np.int64)
        for place in range(int(lengths.max(initial=0))):  # of all, which have one length
            states = products[states, x.values[x.offsets[:-1] + place]]
            answers[x.offsets[:-1] + place] = states
        scored = (ranges(lengths) == np.repeat(lengths, lengths) - 1) | (self.reveal == "every")
        return Split({"x": x}, Ragged(answers, x.offsets), Ragged(scored, x.offsets), {"length": lengths})


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
