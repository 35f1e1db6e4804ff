"""Trees of a given length have the distribution of rejection sampling."""

import numpy as np

from archlang.tasks.kit.listops_trees import Growth, evaluate, grow, write
from archlang.tasks.kit.listops_trees_by_length import LengthTable, grow_to
from archlang.tasks.kit.ragged import Integers
from archlang.tasks.kit.random_stream import RandomStream

GROWTH = Growth(probability=0.25, height=4, arguments=4, limit=30)
TABLE = LengthTable.of(GROWTH)


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
        forest = grow(rng, 1 << 15, GROWTH)
        forest = forest.select((forest.sizes >= 16) & (forest.sizes <= 24))
        lengths.append(forest.sizes)
        heights.append(forest.heights)
        depths.append(evaluate(forest)[1])
        arguments.append(forest.levels[0].arguments)
    sized = grow_to(RandomStream("sized"), TABLE, TABLE.lengths(RandomStream("sizes"), 16, 24, 20_000))
    for grown, by_length in (
        (lengths, sized.sizes),
        (heights, sized.heights),
        (depths, evaluate(sized)[1]),
        (arguments, sized.levels[0].arguments),
    ):
        assert np.abs(shares(np.concatenate(grown)) - shares(by_length)).max() < 0.012


def test_the_probabilities_of_the_table_sum_to_one() -> None:
    table = LengthTable.of(Growth(probability=0.25, height=2, arguments=3, limit=40))
    assert np.isclose(table.powers[2][1].sum(), 1)
    assert np.isclose(table.powers[0][3][3], 1)
    # An operator over two digits, or over three.
    assert np.isclose(table.powers[1][1][4], 0.125)
    assert np.isclose(table.powers[1][1][5], 0.125)
