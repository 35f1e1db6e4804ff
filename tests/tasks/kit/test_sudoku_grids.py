"""Shuffled grids keep the rules of Sudoku."""

import numpy as np
import pytest

from archlang.tasks.kit.random_stream import RandomStream, ScalarStream
from archlang.tasks.kit.sudoku_grids import shuffle, solve


@pytest.mark.parametrize("side", [4, 9])
def test_shuffles_of_a_solution_are_solutions_and_differ(side: int) -> None:
    cells = [0] * side**2
    assert solve(cells, side, ScalarStream(RandomStream("grid")))
    (grids,) = shuffle(RandomStream("shuffle"), side, np.repeat(np.asarray([cells]), 20, axis=0))
    box = round(side**0.5)
    for grid in grids.reshape(-1, side, side):
        boxes = grid.reshape(box, box, box, box).transpose(0, 2, 1, 3).reshape(side, side)
        for units in (grid, grid.T, boxes):
            assert (np.sort(units, axis=1) == np.arange(1, side + 1)).all()
    assert len({grid.tobytes() for grid in grids}) > 10  # of the 288 grids of side 4, some are drawn twice


def test_grids_of_an_item_are_shuffled_in_the_same_way() -> None:
    puzzle = np.arange(16).reshape(1, 16) % 5
    shuffled, shuffled_copy = shuffle(RandomStream("shuffle"), 4, puzzle, puzzle)
    assert (shuffled == shuffled_copy).all()
    assert (shuffled == 0).sum() == (puzzle == 0).sum()


def test_a_contradiction_has_no_solution_and_leaves_the_cells() -> None:
    cells = [1, 2, 3, 0, *[0] * 3, 4, *[0] * 8]
    before = list(cells)
    assert not solve(cells, 4)
    assert cells == before
    free = [1, 2, 3, 0, *[0] * 12]
    assert not solve(list(free), 4, forbidden=(3, 4))
    assert solve(free, 4)
    assert free[3] == 4
