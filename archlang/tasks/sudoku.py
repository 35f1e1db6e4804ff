"""Sudoku: fill the blank cells so that each row, column and box contains every digit once.

As in the data of Wang et al. (2025) and Jolicoeur-Martineau (2025). Cells are made blank in random order, unless that
would allow a second solution.

>>> task = Sudoku(side=4, train=Interval(5, 7), test=Interval(8, 9), train_size=10)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0]), task.spell(train.targets[0] + 1)
('. 4 2 1 1 . . 3 2 3 1 . 4 1 . .', '3 4 2 1 1 2 4 3 2 3 1 4 4 1 3 2')
>>> task.spell(train.inputs["x"][1]), task.spell(train.targets[1] + 1)
('1 3 2 4 2 . 1 3 . . . . . 2 4 1', '1 3 2 4 2 4 1 3 4 1 3 2 3 2 4 1')
"""

from collections.abc import Iterator
from functools import lru_cache
from math import isqrt

import numpy as np

from archlang.tasks.kit.drawing import Fingerprints, RandomStream, ScalarStream, draw_distinct, table_fingerprints
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind, ShippedTask, Unit
from archlang.types.statics import Interval

_BATCH = 1 << 12
# A grid of which fewer cells can be blank is drawn again, this often.
_TRIES = 50


class Sudoku(ShippedTask):
    side: int
    test: Interval
    puzzles: int

    disjoint = ("train", "test")
    kind = Kind.TAGGING
    breakdown = "blanks"
    unit = Unit.SEQUENCE

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (".", *self.class_names)

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(str(digit) for digit in range(1, self.side + 1))

    def make(self, split: str, seed: int) -> Split:
        blanks, size = self.test if split == "test" else self.train, self.size(split)
        rng = RandomStream(self.name, self.side, split, blanks.low, blanks.high, seed)
        puzzles, solutions = self._draw(rng, blanks, min(self.puzzles, max(size, 1)))

        def draw(count: int) -> tuple[Split, Fingerprints]:
            chosen = rng.below(len(puzzles), count)
            x, y = shuffle(rng, self.side, puzzles[chosen], solutions[chosen])
            return puzzle_split(x, y), table_fingerprints(x)

        return draw_distinct(self.name, split, size, draw, _BATCH, "more `puzzles`")

    def _draw(self, rng: RandomStream, blanks: Interval, count: int) -> tuple[np.ndarray, np.ndarray]:
        scalars, rows = ScalarStream(rng), []
        for _ in range(count):
            holes = blanks.low + scalars.below(blanks.high - blanks.low + 1)
            for _ in range(_TRIES):
                row = draw_puzzle(scalars, self.side, holes)
                if row[0].count(0) == holes:
                    break
            else:
                message = f"no puzzle of sudoku with {holes} blank cells was found in {_TRIES} tries"
                raise TaskError(message, "choose ranges with fewer blank cells")
            rows.append(row)
        puzzles, solutions = np.asarray(rows, dtype=np.uint8).transpose(1, 0, 2)
        return puzzles, solutions


def puzzle_split(puzzles: np.ndarray, solutions: np.ndarray, **groups: np.ndarray) -> Split:
    """Returns grids [N, cells] and their solutions as items."""
    groups = {"blanks": (puzzles == 0).sum(axis=1).astype(np.int64), **groups}
    return Split({"x": Ragged.table(puzzles)}, Ragged.table(solutions - np.uint8(1)), groups=groups)


# Grids


@lru_cache
def _units(side: int) -> tuple[tuple[int, int, int], ...]:
    """Returns the numbers of the row, the column and the box of each cell; no two units have the same number."""
    box = isqrt(side)
    return tuple(
        (row, side + column, 2 * side + row // box * box + column // box)
        for row in range(side)
        for column in range(side)
    )


def solve(cells: list[int], side: int, rng: ScalarStream | None = None, forbidden: tuple[int, int] = (-1, 0)) -> bool:
    """Fills the blank cells with a solution in place. Returns whether there is one; if not, the cells stay as they are.

    Args:
        rng: Tries digits in random order; without it, in ascending order.
        forbidden: A cell, and a digit that it must not have."""
    units, free = _units(side), [(1 << side) - 1] * (3 * side)
    blanks = []
    for cell, digit in enumerate(cells):
        if not digit:
            blanks.append(cell)
            continue
        for unit in units[cell]:
            free[unit] &= ~(1 << digit - 1)
    forbidden_cell, forbidden_digit = forbidden

    def candidates(cell: int) -> int:
        row, column, box = units[cell]
        bits = free[row] & free[column] & free[box]
        return bits & ~(1 << forbidden_digit - 1) if cell == forbidden_cell else bits

    def fill() -> bool:
        if not blanks:
            return True
        fewest, best, choices = side + 1, 0, 0
        for index, cell in enumerate(blanks):
            bits = candidates(cell)
            if bits.bit_count() < fewest:
                fewest, best, choices = bits.bit_count(), index, bits
                if fewest < 2:
                    break
        cell, blanks[best] = blanks[best], blanks[-1]
        blanks.pop()
        for digit in _digits(choices, rng):
            cells[cell] = digit
            for unit in units[cell]:
                free[unit] ^= 1 << digit - 1
            if fill():
                return True
            for unit in units[cell]:
                free[unit] ^= 1 << digit - 1
        cells[cell] = 0
        blanks.append(cell)
        return False

    return fill()


def draw_puzzle(rng: ScalarStream, side: int, holes: int) -> tuple[list[int], list[int]]:
    """Returns a random puzzle with one solution, and its solution. It has `holes` blank cells, or fewer if no further
    cell can be blank."""
    solution = [0] * side**2
    solve(solution, side, rng)
    puzzle, order = list(solution), list(range(side**2))
    for index in range(len(order) - 1, 0, -1):
        earlier = rng.below(index + 1)
        order[index], order[earlier] = order[earlier], order[index]
    blank = 0
    for cell in order:
        if blank == holes:
            break
        puzzle[cell] = 0
        if solve(list(puzzle), side, forbidden=(cell, solution[cell])):
            puzzle[cell] = solution[cell]  # a second solution
        else:
            blank += 1
    return puzzle, solution


def shuffle(rng: RandomStream, side: int, *grids: np.ndarray) -> tuple[np.ndarray, ...]:
    """Returns each of the grids [N, side²] with item i shuffled in the same way in all: digits are permuted, and bands,
    the rows of a band, stacks and the columns of a stack are; half of the items are transposed."""
    count = len(grids[0])
    digits = np.concatenate([np.zeros((count, 1), np.int64), 1 + _orders(rng, count, side)], axis=1)
    rows, columns = _line_order(rng, count, side), _line_order(rng, count, side)
    places = rows[:, :, None] * side + columns[:, None, :]
    transposed = rng.below(2, count).astype(np.bool_)
    places[transposed] = places[transposed].transpose(0, 2, 1)
    places = places.reshape(count, -1)
    return tuple(
        np.take_along_axis(digits, np.take_along_axis(grid.astype(np.int64), places, axis=1), axis=1).astype(np.uint8)
        for grid in grids
    )


def _orders(rng: RandomStream, count: int, size: int) -> np.ndarray:
    return np.argsort(rng.words((count, size)), axis=1, kind="stable")


def _line_order(rng: RandomStream, count: int, side: int) -> np.ndarray:
    """Returns for each item an order of its rows that keeps bands together: [count, side]."""
    box = isqrt(side)
    within = np.stack([_orders(rng, count, box) for _ in range(box)], axis=1)
    bands = _orders(rng, count, box)
    return np.asarray(bands[:, :, None] * box + within).reshape(count, side)


def _digits(bits: int, rng: ScalarStream | None) -> Iterator[int]:
    digits = [digit + 1 for digit in range(bits.bit_length()) if bits >> digit & 1]
    while digits:
        yield digits.pop(0 if rng is None else rng.below(len(digits)))
