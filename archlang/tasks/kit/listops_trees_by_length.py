"""ListOps trees of a wanted length, drawn as `trees.grow` would draw them if it were asked until the length is right.

Of a million trees of the original distribution about 14 have 900 to 1,000 tokens, so asking again takes long. With
p_h(n) the probability that a tree of height at most h has n tokens,

    p_0(n) = [n = 1]        p_h(n) = (1 - P) [n = 1] + P / (A - 1) * sum over k = 2..A of p_{h-1}^{*k}(n - 2)

where P is the probability of an operator, A its most arguments and *k the k-fold convolution. A tree of n tokens is
then drawn from its root down: the number of arguments in proportion to p_{h-1}^{*k}(n - 2), and the length of each
argument given what is left for it and the later ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.listops_trees import MAX, Forest, Growth, Level
from archlang.tasks.kit.ragged import Integers, offsets_of
from archlang.tasks.kit.random_stream import RandomStream

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LengthTable:
    """`powers[h][j][n]` is the probability that j trees of height at most h have n tokens together."""

    growth: Growth
    powers: tuple[tuple[Reals, ...], ...]

    @staticmethod
    def of(growth: Growth) -> LengthTable:
        longest = growth.limit
        single = np.zeros(longest + 1)
        single[1] = 1.0
        powers: list[tuple[Reals, ...]] = []
        for height in range(growth.height + 1):
            if height:
                operator = np.zeros(longest + 1)
                for power in powers[-1][2:]:
                    operator[2:] += power[:-2]
                single = growth.probability / (growth.arguments - 1) * operator
                single[1] += 1 - growth.probability
            none = np.zeros(longest + 1)
            none[0] = 1.0
            found = [none, single]
            while len(found) <= growth.arguments:
                found.append(_convolve(found[-1], single))
            powers.append(tuple(found))
        return LengthTable(growth, tuple(powers))

    def lengths(self, rng: RandomStream, low: int, high: int, count: int) -> Integers:
        """Lengths from low to high, as often as trees have them."""
        weights = self.powers[-1][1][low : high + 1]
        return np.asarray(_choose(weights, rng.real(count)) + low)


def grow_to(rng: RandomStream, table: LengthTable, lengths: Integers) -> Forest:
    """A random tree of each length."""
    sizes, tree = lengths, np.arange(len(lengths), dtype=np.int64)
    heights = np.zeros(len(lengths), dtype=np.int64)
    levels: list[Level] = []
    while len(sizes):
        token = rng.below(10, len(sizes)).astype(np.uint8)
        arguments = np.zeros(len(sizes), dtype=np.int64)
        at = np.flatnonzero(sizes > 1)
        if len(at):
            powers = table.powers[table.growth.height - 1 - len(levels)]
            token[at] = MAX + rng.below(4, len(at))
            arguments[at] = _argument_counts(rng, powers, sizes[at] - 2)
            heights[tree[at]] = len(levels) + 1
        levels.append(Level(tree, token, arguments))
        sizes = _argument_sizes(rng, powers, sizes[at] - 2, arguments[at]) if len(at) else sizes[:0]
        tree = np.repeat(tree, arguments)
    return Forest(tuple(levels), lengths, heights)


def _argument_counts(rng: RandomStream, powers: tuple[Reals, ...], inside: Integers) -> Integers:
    """How many arguments share `inside` tokens."""
    cumulative = np.cumsum([power[inside] for power in powers[2:]], axis=0)
    passed = rng.real(len(inside)) * cumulative[-1] >= cumulative[:-1]
    return np.asarray(2 + passed.sum(axis=0, dtype=np.int64))


def _argument_sizes(rng: RandomStream, powers: tuple[Reals, ...], inside: Integers, arguments: Integers) -> Integers:
    """The lengths of all arguments, operator after operator; those of one operator add up to its `inside`."""
    first = offsets_of(arguments)
    sizes = np.empty(first[-1], dtype=np.int64)
    left, later = inside.copy(), arguments - 1
    while True:
        last = np.flatnonzero(later == 0)
        sizes[first[last] + arguments[last] - 1] = left[last]
        if not (later > 0).any():
            return sizes
        for count in range(1, int(later.max()) + 1):
            at = np.flatnonzero(later == count)
            uniform = rng.real(len(at))
            for total in np.unique(left[at]):
                same = left[at] == total
                weights = powers[1][: total + 1] * powers[count][total::-1]
                chosen = at[same]
                sizes[first[chosen] + arguments[chosen] - 1 - count] = _choose(weights, uniform[same])
                left[chosen] -= sizes[first[chosen] + arguments[chosen] - 1 - count]
        later = later - 1


def _choose(weights: Reals, uniform: Reals) -> Integers:
    """Indices in proportion to their weights."""
    cumulative = np.cumsum(weights)
    return np.asarray(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"), dtype=np.int64)


def _convolve(first: Reals, second: Reals) -> Reals:
    """The convolution, cut off at the same length. Not `np.convolve`: its sums are rounded as each machine's linear
    algebra likes, and every machine shall draw the same trees."""
    result = np.zeros_like(first)
    for index in np.flatnonzero(first):
        result[index:] += first[index] * second[: len(second) - index]
    return result
