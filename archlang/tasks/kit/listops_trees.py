"""Batches of ListOps trees, which are drawn, evaluated and written level by level instead of node by node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.split import Integers, Ragged, Truths, join, offsets_of

Tokens = npt.NDArray[np.uint8]

VOCABULARY = (*"0123456789", "[MAX", "[MED", "[MIN", "[SM", "]")
MAX, MED, MIN, SM, CLOSE = range(10, 15)


@dataclass(frozen=True, eq=False)
class Trees:
    """N expressions: their tokens, their values [N] and their depths [N]."""

    x: Ragged
    values: Integers
    depths: Integers

    def __len__(self) -> int:
        return len(self.x)

    def select(self, chosen: Truths | Integers) -> Trees:
        return Trees(self.x.select(chosen), self.values[chosen], self.depths[chosen])

    def within(self, room: Integers) -> Truths:
        """Marks the first `room[depth]` expressions of each depth."""
        ranks = np.zeros(len(self), dtype=np.int64)
        for depth in np.unique(self.depths):
            same = self.depths == depth
            ranks[same] = np.arange(same.sum())
        return np.asarray(ranks < room[self.depths])


def join_expressions(parts: Sequence[Trees]) -> Trees:
    """Returns the expressions of all parts, one part after another."""
    empty = np.zeros(0, dtype=np.int64)
    return Trees(
        join([part.x for part in parts]),
        np.concatenate([empty, *(part.values for part in parts)]),
        np.concatenate([empty, *(part.depths for part in parts)]),
    )


@dataclass(frozen=True, kw_only=True)
class Branching:
    """How trees are drawn. A node less than `height` operators below the root is an operator with this probability;
    operators have 2 to `arguments` arguments. Drawing stops for trees larger than `limit`, where an operator adds
    `cost` to the size of a tree and a digit adds 1."""

    probability: float
    height: int
    arguments: int
    limit: int
    cost: int = 2


@dataclass(frozen=True, eq=False)
class Level:
    """The N nodes at one distance from the roots, tree by tree and from left to right: the tree [N] and the token [N]
    of each node, and the number of its arguments [N], which are nodes of the next level."""

    tree: Integers
    token: Tokens
    arguments: Integers


@dataclass(frozen=True, eq=False)
class Forest:
    """N trees, their sizes [N] as counted by `Branching`, and their heights [N] in operators. A tree whose size exceeds
    the limit is unfinished and must be dropped."""

    levels: tuple[Level, ...]
    sizes: Integers
    heights: Integers

    def __len__(self) -> int:
        return len(self.sizes)

    def most_arguments(self) -> Integers:
        """Returns the largest number of arguments of an operator of each tree [N]."""
        most = np.zeros(len(self), dtype=np.int64)
        for level in self.levels:
            np.maximum.at(most, level.tree, level.arguments)
        return most

    def select(self, keep: Truths) -> Forest:
        """Returns the trees where a mask [N] is true."""
        numbers = np.cumsum(keep) - 1
        levels = []
        for level in self.levels:
            nodes = np.flatnonzero(keep[level.tree])
            if len(nodes):
                levels.append(Level(numbers[level.tree[nodes]], level.token[nodes], level.arguments[nodes]))
        return Forest(tuple(levels), self.sizes[keep], self.heights[keep])


def grow(rng: RandomStream, count: int, branching: Branching) -> Forest:
    """Returns `count` random trees."""
    tree = np.arange(count, dtype=np.int64)
    sizes, heights = np.ones(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    threshold = np.uint64(int(branching.probability * 2**24))
    levels: list[Level] = []
    while len(tree):
        # One word determines a node: 24 bits whether it is an operator, 20 its token, 20 the number of its arguments.
        words = rng.words(len(tree))
        token = (((words >> np.uint64(20)) & np.uint64(0xFFFFF)) * np.uint64(10) >> np.uint64(20)).astype(np.uint8)
        arguments = np.zeros(len(tree), dtype=np.int64)
        if len(levels) < branching.height:
            at = np.flatnonzero(words >> np.uint64(40) < threshold)
            token[at] = _operators(words[at])
            arguments[at] = _argument_counts(words[at], branching.arguments)
            heights[tree[at]] = len(levels) + 1
            np.add.at(sizes, tree[at], arguments[at] + (branching.cost - 1))
            arguments[at[sizes[tree[at]] > branching.limit]] = 0
        levels.append(Level(tree, token, arguments))
        tree = np.repeat(tree, arguments)
    return Forest(tuple(levels), sizes, heights)


def graft(rng: RandomStream, forest: Forest, branching: Branching) -> Forest:
    """Returns each tree as an argument, but not the last one, of a new operator whose other 2 to `arguments - 1`
    arguments are drawn."""
    count = len(forest)
    words = rng.words(count)
    fresh_counts = _argument_counts(words, branching.arguments - 1)
    places = ((words >> np.uint64(40)) * fresh_counts.astype(np.uint64) >> np.uint64(24)).astype(np.int64)
    below = Branching(
        probability=branching.probability,
        height=branching.height - 1,
        arguments=branching.arguments,
        limit=branching.limit,
        cost=branching.cost,
    )
    fresh = grow(rng, int(fresh_counts.sum()), below)
    owner = np.repeat(np.arange(count), fresh_counts)
    slot = np.arange(len(owner)) - np.repeat(offsets_of(fresh_counts)[:-1], fresh_counts)
    slot += slot >= places[owner]
    width = branching.arguments + 1
    keys_old, keys_fresh = np.arange(count) * width + places, owner * width + slot
    levels = [Level(np.arange(count), _operators(words), fresh_counts + 1)]
    empty = Level(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.int64))
    for depth in range(max(len(forest.levels), len(fresh.levels))):
        old = forest.levels[depth] if depth < len(forest.levels) else empty
        new = fresh.levels[depth] if depth < len(fresh.levels) else empty
        # The order of nodes is that of the arguments of the new operators that contain them.
        keys = np.concatenate([keys_old[old.tree], keys_fresh[new.tree]])
        order = np.argsort(keys, kind="stable")
        token, arguments = np.concatenate([old.token, new.token]), np.concatenate([old.arguments, new.arguments])
        levels.append(Level(keys[order] // width, token[order], arguments[order]))
    sizes = forest.sizes + branching.cost
    np.add.at(sizes, owner, fresh.sizes)
    heights = forest.heights.copy()
    np.maximum.at(heights, owner, fresh.heights)
    return Forest(tuple(levels), sizes, heights + 1)


def evaluate(forest: Forest) -> tuple[Integers, Integers]:
    """Returns the value [N] and the dependency depth [N] of each tree.

    The dependency depth is the number of operations that depend on each other, counting only the arguments that
    determine the result: the first extreme argument, the middle arguments, all arguments of SM."""
    values, depths = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for level in reversed(forest.levels):
        value, depth = level.token.astype(np.int64), np.zeros(len(level.token), dtype=np.int64)
        operators = np.flatnonzero(level.arguments)
        first = offsets_of(level.arguments)[operators]
        # The number of arguments and the operator in one number.
        shapes = level.arguments[operators] * 16 + level.token[operators]
        for shape in np.unique(shapes):
            chosen = shapes == shape
            children = first[chosen, None] + np.arange(shape // 16)
            at = operators[chosen]
            value[at], depth[at] = _apply(int(shape % 16), values[children], depths[children])
        values, depths = value, depth
    return values, depths


def write(forest: Forest) -> Ragged:
    """Returns the trees as tokens."""
    sizes, running = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)]
    for level in reversed(forest.levels):
        first = offsets_of(level.arguments)
        inside = running[-1][first[1:]] - running[-1][first[:-1]]
        sizes.append(np.where(level.arguments > 0, inside + 2, 1))
        running.append(offsets_of(sizes[-1]))
    offsets = running[-1]
    values, starts = np.empty(offsets[-1], dtype=np.uint8), offsets[:-1]
    for level in forest.levels:
        size = sizes.pop()
        running.pop()
        operators = level.arguments > 0
        values[starts] = level.token
        values[(starts + size - 1)[operators]] = CLOSE
        # An argument starts after its operator and the arguments on its left.
        first = offsets_of(level.arguments)[:-1]
        starts = np.repeat(starts + 1 - running[-1][first], level.arguments) + running[-1][:-1]
    return Ragged(values, offsets)


def _apply(operator: int, values: Integers, depths: Integers) -> tuple[Integers, Integers]:
    """Returns the values [N] and depths [N] of one operator over arguments [N, k]."""
    rows = np.arange(len(values))
    if operator == SM:
        return values.sum(axis=1) % 10, depths.max(axis=1) + 1
    if operator == MED:
        order = np.argsort(values, axis=1, kind="stable")
        middle = values.shape[1] // 2
        upper, lower = order[:, middle], order[:, middle if values.shape[1] % 2 else middle - 1]
        value = (values[rows, lower] + values[rows, upper]) // 2
        return value, np.maximum(depths[rows, lower], depths[rows, upper]) + 1
    chosen = values.argmax(axis=1) if operator == MAX else values.argmin(axis=1)
    return values[rows, chosen], depths[rows, chosen] + 1


def _operators(words: npt.NDArray[np.uint64]) -> Tokens:
    return (MAX + ((words >> np.uint64(38)) & np.uint64(3))).astype(np.uint8)


def _argument_counts(words: npt.NDArray[np.uint64], most: int) -> Integers:
    low = words & np.uint64(0xFFFFF)
    return np.asarray((low * np.uint64(most - 1) >> np.uint64(20)).astype(np.int64) + 2)


# Trees of given lengths


Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LengthTable:
    """`powers[h][j][n]` is the probability that j trees of height at most h have n tokens in total."""

    branching: Branching
    powers: tuple[tuple[Reals, ...], ...]

    @staticmethod
    def of(branching: Branching) -> LengthTable:
        """Computes the table for all lengths up to `branching.limit`."""
        longest = branching.limit
        single = np.zeros(longest + 1)
        single[1] = 1.0
        powers: list[tuple[Reals, ...]] = []
        for height in range(branching.height + 1):
            if height:
                operator = np.zeros(longest + 1)
                for power in powers[-1][2:]:
                    operator[2:] += power[:-2]
                single = branching.probability / (branching.arguments - 1) * operator
                single[1] += 1 - branching.probability
            none = np.zeros(longest + 1)
            none[0] = 1.0
            height_powers = [none, single]
            while len(height_powers) <= branching.arguments:
                height_powers.append(_convolve(height_powers[-1], single))
            powers.append(tuple(height_powers))
        return LengthTable(branching, tuple(powers))

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
            powers = table.powers[table.branching.height - 1 - len(levels)]
            token[at] = MAX + rng.below(4, len(at))
            arguments[at] = _drawn_arguments(rng, powers, sizes[at] - 2)
            heights[tree[at]] = len(levels) + 1
        levels.append(Level(tree, token, arguments))
        sizes = _argument_sizes(rng, powers, sizes[at] - 2, arguments[at]) if len(at) else sizes[:0]
        tree = np.repeat(tree, arguments)
    return Forest(tuple(levels), lengths, heights)


def _drawn_arguments(rng: RandomStream, powers: tuple[Reals, ...], inside: Integers) -> Integers:
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
