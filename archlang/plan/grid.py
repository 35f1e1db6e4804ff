"""Which points of a grid a check looks at, where it cannot look at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod
from random import Random

# Points of a recipe, of its search, and cells of a table that `check` plans.
MOST_POINTS = 256


def spread(sizes: Sequence[int], most: int = MOST_POINTS) -> Iterator[tuple[int, ...]]:
    """Places in a grid with these sizes, without repetition, and its first corner first: all of them if they are no
    more than `most`. If they are, a Latin hypercube: along each axis every place once or more, or as many as fit."""
    if prod(sizes) <= most:
        yield from product(*map(range, sizes))
        return
    axes = [_shuffled(size, most, Random(axis)) for axis, size in enumerate(sizes)]
    first = (0,) * len(sizes)
    yield from islice(dict.fromkeys([first, *zip(*axes, strict=True)]), most)


def _shuffled(size: int, count: int, random: Random) -> list[int]:
    """So many places of an axis, evenly spread with both ends."""
    places = [index * (size - 1) // (count - 1) if size > count else index % size for index in range(count)]
    random.shuffle(places)
    return places
