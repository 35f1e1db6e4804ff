"""Batches of trees agree with a slow parser of their tokens."""

import numpy as np
import pytest

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.listops_trees import (
    CLOSE,
    MAX,
    MED,
    MIN,
    SM,
    Branching,
    Forest,
    LengthTable,
    Level,
    evaluate,
    graft,
    grow,
    grow_to,
    write,
)
from archlang.tasks.kit.split import Integers

GROWTH = Branching(probability=0.3, height=5, arguments=5, limit=50, cost=3)


def read(tokens: list[int], start: int = 0) -> tuple[int, int, int, int, int]:
    """Returns the value, the dependency depth, the height and the largest number of arguments of the tree at `start`,
    and the index after it."""
    if tokens[start] < 10:
        return tokens[start], 0, 0, 0, start + 1
    arguments, at = [], start + 1
    while tokens[at] != CLOSE:
        *argument, at = read(tokens, at)
        arguments.append(argument)
    values = [argument[0] for argument in arguments]
    ranked = sorted(range(len(values)), key=lambda index: values[index])
    middle = len(values) // 2
    sources = {
        MAX: [values.index(max(values))],
        MIN: [values.index(min(values))],
        MED: ranked[middle : middle + 1] if len(values) % 2 else ranked[middle - 1 : middle + 1],
        SM: list(range(len(values))),
    }[tokens[start]]
    total = sum(values[source] for source in sources)
    value = total % 10 if tokens[start] == SM else total // len(sources)
    depth = 1 + max(arguments[source][1] for source in sources)
    height = 1 + max(argument[2] for argument in arguments)
    return value, depth, height, max(len(arguments), *(argument[3] for argument in arguments)), at + 1


def check(forest: Forest, cost: int) -> None:
    values, depths = evaluate(forest)
    tokens = write(forest)
    assert len(tokens) == len(forest) > 1000
    for index in range(len(forest)):
        row = tokens[index].tolist()
        value, depth, height, _, end = read(row)
        assert end == len(row)
        assert (value, depth, height) == (values[index], depths[index], forest.heights[index])
        assert forest.sizes[index] == len(row) + (cost - 2) * sum(MAX <= token <= SM for token in row)


def finished(forest: Forest) -> Forest:
    return forest.select(forest.sizes <= GROWTH.limit)


@pytest.mark.parametrize("arguments", [3, 5, 15])
def test_drawn_trees_agree_with_a_slow_parser(arguments: int) -> None:
    growth = Branching(probability=0.3, height=4, arguments=arguments, limit=200)
    forest = grow(RandomStream("grown", arguments), 3000, growth)
    check(forest.select(forest.sizes <= 200), cost=2)


def test_grafted_trees_agree_with_a_slow_parser_and_are_one_higher() -> None:
    old = finished(grow(RandomStream("old"), 4000, GROWTH))
    old = old.select(old.heights < 5)
    new = graft(RandomStream("new"), old, GROWTH)
    assert (new.heights > old.heights).all()
    assert new.heights.max() == 5
    check(finished(new), cost=3)


def test_the_old_tree_is_never_the_last_argument() -> None:
    old = grow(RandomStream("digits"), 2000, Branching(probability=0.0, height=0, arguments=5, limit=9))
    (digits,) = old.levels
    sevens = Level(digits.tree, np.full(2000, 7, dtype=np.uint8), digits.arguments)
    marked = Forest((sevens,), old.sizes, old.heights)
    new = write(graft(RandomStream("places"), marked, Branching(probability=0.0, height=1, arguments=5, limit=9)))
    rows = [new[index].tolist() for index in range(2000)]
    assert {len(row) - 2 for row in rows} == {3, 4, 5}
    for count in (3, 4, 5):
        seven = np.array([[token == 7 for token in row[1:-1]] for row in rows if len(row) - 2 == count])
        assert seven[:, :-1].any(axis=1).all()
        # Any other digit is a seven once in ten times.
        assert abs(seven[:, -1].mean() - 0.1) < 0.06


def test_operators_have_the_given_probability() -> None:
    forest = grow(RandomStream("shares"), 100_000, Branching(probability=0.25, height=1, arguments=5, limit=99))
    root, leaves = forest.levels
    operators = root.arguments > 0
    assert abs(operators.mean() - 0.25) < 0.01
    assert np.allclose(np.bincount(root.arguments[operators])[2:] / operators.sum(), 0.25, atol=0.01)
    assert np.allclose(np.bincount(root.token[operators])[10:] / operators.sum(), 0.25, atol=0.01)
    assert np.allclose(np.bincount(leaves.token) / len(leaves.token), 0.1, atol=0.01)


def test_a_tree_over_the_limit_is_unfinished_and_marked() -> None:
    growth = Branching(probability=0.9, height=12, arguments=5, limit=60)
    forest = grow(RandomStream("large"), 2000, growth)
    assert max(len(level.tree) for level in forest.levels) < 2000 * 61
    assert 0 < (forest.sizes > 60).mean() < 1


def test_an_empty_forest_is_empty() -> None:
    none = grow(RandomStream("none"), 10, GROWTH).select(np.zeros(10, dtype=np.bool_))
    assert len(write(none)) == len(evaluate(none)[0]) == len(graft(RandomStream("none"), none, GROWTH)) == 0


SHORT = Branching(probability=0.25, height=4, arguments=4, limit=30)
TABLE = LengthTable.of(SHORT)


def shares(values: Integers) -> np.ndarray:
    return np.bincount(values, minlength=40) / len(values)


def test_every_tree_has_its_length() -> None:
    lengths = TABLE.lengths(RandomStream("lengths"), 4, 30, 500)
    forest = grow_to(RandomStream("trees"), TABLE, lengths)
    assert write(forest).lengths.tolist() == lengths.tolist()
    assert forest.heights.max() == 4


def test_they_have_the_distribution_of_rejection_sampling() -> None:
    rng, lengths, heights, depths, arguments = RandomStream("grown"), [], [], [], []
    for _ in range(40):
        forest = grow(rng, 1 << 15, SHORT)
        forest = forest.select((forest.sizes >= 16) & (forest.sizes <= 24))
        lengths.append(forest.sizes)
        heights.append(forest.heights)
        depths.append(evaluate(forest)[1])
        arguments.append(forest.levels[0].arguments)
    sized = grow_to(RandomStream("sized"), TABLE, TABLE.lengths(RandomStream("sizes"), 16, 24, 20_000))
    for grown, by_length in (
        (lengths, sized.sizes), (heights, sized.heights), (depths, evaluate(sized)[1]),
        (arguments, sized.levels[0].arguments),
    ):  # fmt: skip
        assert np.abs(shares(np.concatenate(grown)) - shares(by_length)).max() < 0.012


def test_the_probabilities_of_the_table_sum_to_one() -> None:
    table = LengthTable.of(Branching(probability=0.25, height=2, arguments=3, limit=40))
    assert np.isclose(table.powers[2][1].sum(), 1)
    assert np.isclose(table.powers[0][3][3], 1)
    # An operator over two digits, or over three.
    assert np.isclose(table.powers[1][1][4], 0.125)
    assert np.isclose(table.powers[1][1][5], 0.125)
