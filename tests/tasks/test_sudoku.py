"""Sudoku puzzles have one solution, which the answer is."""

from collections.abc import Iterator
from itertools import product
from math import isqrt
from unittest.mock import patch

import numpy as np
import pytest

from archlang.tasks import sudoku
from archlang.tasks.kit.drawing import RandomStream, ScalarStream
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.sudoku import Sudoku, shuffle, solve
from archlang.types.statics import Interval
from tests.tasks.every import answers_of

SMALL = Sudoku(
    side=4, train=Interval(3, 6), test=Interval(7, 9), puzzles=20, train_size=60, valid_size=10, test_size=20
)


def solutions(puzzle: list[int], side: int) -> Iterator[list[int]]:
    """Tries every digit of the first blank cell."""
    if 0 not in puzzle:
        yield puzzle
        return
    cell, box = puzzle.index(0), isqrt(side)
    row, column = divmod(cell, side)
    seen = {
        puzzle[i * side + j]
        for i, j in product(range(side), range(side))
        if i == row or j == column or (i // box, j // box) == (row // box, column // box)
    }
    for digit in set(range(1, side + 1)) - seen:
        yield from solutions([*puzzle[:cell], digit, *puzzle[cell + 1 :]], side)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_answer_is_the_only_solution(split: str) -> None:
    items = SMALL.generate(split, 0)
    for index in range(len(items)):
        puzzle = items.inputs["x"][index].tolist()
        assert list(solutions(puzzle, 4)) == [(answers_of(items)[index] + 1).tolist()]
        assert puzzle.count(0) == items.groups["blanks"][index]


def test_a_large_puzzle_has_one_solution_and_as_many_blank_cells_as_asked() -> None:
    task = Sudoku(train=Interval(20, 30), test=Interval(45, 50), puzzles=2, test_size=3)
    items = task.generate("test", 0)
    for index in range(len(items)):
        assert list(solutions(items.inputs["x"][index].tolist(), 9)) == [(answers_of(items)[index] + 1).tolist()]
    assert set(items.groups["blanks"].tolist()) <= set(range(45, 51))


def test_items_are_shuffles_of_few_puzzles() -> None:
    items = Sudoku(
        side=4, train=Interval(5, 5), test=Interval(6, 6), puzzles=1, train_size=40
    ).generate("train", 0)  # fmt: skip
    rows = np.stack([items.inputs["x"][index] for index in range(len(items))])
    assert len(np.unique(rows, axis=0)) == 40
    assert set((rows == 0).sum(1).tolist()) == {5}


def test_impossible_puzzles_are_refused() -> None:
    hard = Sudoku(side=4, train=Interval(12, 12), test=Interval(5, 5))
    with (
        patch.object(sudoku, "_TRIES", 1),
        pytest.raises(TaskError, match="no puzzle of sudoku with 12 blank cells was found"),
    ):
        hard.generate("train", 0)


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
