"""ListOps trees of given lengths, with the distribution of `listops_trees.grow` conditioned on the length.

About 14 of a million trees of the original distribution have 900 to 1,000 tokens, so rejection sampling is slow. Let
p_h(n) be the probability that a tree of height at most h has n tokens. Then

    p_0(n) = [n = 1]        p_h(n) = (1 - P) [n = 1] + P / (A - 1) * sum over k = 2..A of p_{h-1}^{*k}(n - 2)

where P is the probability of an operator, A the largest number of its arguments, and *k the k-fold convolution. A tree
of n tokens is drawn from its root down: the number of arguments in proportion to p_{h-1}^{*k}(n - 2), then the length
of each argument, conditioned on the total length of it and the later arguments."""

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
    """`powers[h][j][n]` is the probability that j trees of height at most h have n tokens in total."""

    growth: Growth
    powers: tuple[tuple[Reals, ...], ...]

    @staticmethod
    def of(growth: Growth) -> LengthTable:
        """Computes the table for all lengths up to `growth.limit`."""
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
            height_powers = [none, single]
            while len(height_powers) <= growth.arguments:
                height_powers.append(_convolve(height_powers[-1], single))
            powers.append(tuple(height_powers))
        return LengthTable(growth, tuple(powers))

    def lengths(self, rng: RandomStream, low: int, high: int, count: int) -> Integers:
        """Returns `count` random lengths from `low` to `high`, with the distribution of the lengths of trees."""
        weights = self.powers[-1][1][low : high + 1]
        return np.asarray(_choose(weights, rng.real(count)) + low)


def grow_to(rng: RandomStream, table: LengthTable, lengths: Integers) -> Forest:
    """Returns a random tree of each length [N]."""
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
    """Returns a random number of arguments for each operator; `inside` [N] is the number of tokens of its arguments."""
    cumulative = np.cumsum([power[inside] for power in powers[2:]], axis=0)
    exceeded = rng.real(len(inside)) * cumulative[-1] >= cumulative[:-1]
    return np.asarray(2 + exceeded.sum(axis=0, dtype=np.int64))


def _argument_sizes(rng: RandomStream, powers: tuple[Reals, ...], inside: Integers, arguments: Integers) -> Integers:
    """Returns random lengths of all arguments, operator by operator. The lengths of an operator's arguments sum to its
    `inside`."""
    first = offsets_of(arguments)
    sizes = np.empty(first[-1], dtype=np.int64)
    remaining, later = inside.copy(), arguments - 1
    while True:
        last = np.flatnonzero(later == 0)
        sizes[first[last] + arguments[last] - 1] = remaining[last]
        if not (later > 0).any():
            return sizes
        for count in range(1, int(later.max()) + 1):
            at = np.flatnonzero(later == count)
            uniform = rng.real(len(at))
            for total in np.unique(remaining[at]):
                same = remaining[at] == total
                weights = powers[1][: total + 1] * powers[count][total::-1]
                chosen = at[same]
                sizes[first[chosen] + arguments[chosen] - 1 - count] = _choose(weights, uniform[same])
                remaining[chosen] -= sizes[first[chosen] + arguments[chosen] - 1 - count]
        later = later - 1


def _choose(weights: Reals, uniform: Reals) -> Integers:
    """Returns random indices in proportion to their weights, from uniform numbers [N] in [0, 1)."""
    cumulative = np.cumsum(weights)
    return np.asarray(np.searchsorted(cumulative, uniform * cumulative[-1], side="right"), dtype=np.int64)


def _convolve(first: Reals, second: Reals) -> Reals:
    """Returns the convolution, truncated to the same length. `np.convolve` rounds differently on each machine, and
    every machine must draw the same trees."""
    result = np.zeros_like(first)
    for index in np.flatnonzero(first):
        result[index:] += first[index] * second[: len(second) - index]
    return result
