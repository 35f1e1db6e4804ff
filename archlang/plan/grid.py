"""The points of a grid that a check plans: all of a small grid, a sample of a large one."""

from collections.abc import Iterator, Sequence
from itertools import islice, product
from math import prod
from random import Random

# A check plans at most this many points of a recipe, values of a search, or cells of a table.
MOST_POINTS = 256


def spread(sizes: Sequence[int], most: int = MOST_POINTS) -> Iterator[tuple[int, ...]]:
    """Yields distinct indices into a grid with these sizes, the first corner first. If the grid has more than `most`
    points, yields a Latin hypercube sample of them: each index of each axis at least once, or as many as fit."""
    if prod(sizes) <= most:
        yield from product(*map(range, sizes))
        return
    axes = [_shuffled_indices(size, most, Random(axis)) for axis, size in enumerate(sizes)]
    first = (0,) * len(sizes)
    yield from islice(dict.fromkeys([first, *zip(*axes, strict=True)]), most)


def _shuffled_indices(size: int, count: int, random: Random) -> list[int]:
    """Returns `count` indices of an axis, evenly spaced from end to end, in random order."""
    indices = [index * (size - 1) // (count - 1) if size > count else index % size for index in range(count)]
    random.shuffle(indices)
    return indices
