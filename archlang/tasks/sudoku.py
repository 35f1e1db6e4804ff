"""Sudoku: fill the blank cells so that each row, column and box contains every digit once.

The model answers for every cell, as in the data of "Hierarchical Reasoning Model" (Wang et al., 2025) and "Less is
More" (Jolicoeur-Martineau, 2025). Each puzzle has one solution: cells are made blank in random order, unless that would
allow a second one.

>>> task = Sudoku(side=4, train=Interval(5, 7), test=Interval(8, 9), train_size=10)
>>> train = task.generate("train", seed=0)
>>> spell(task, train.inputs["x"][0]), spell_solution(task, train.targets[0])
('. 4 2 1 1 . . 3 2 3 1 . 4 1 . .', '3 4 2 1 1 2 4 3 2 3 1 4 4 1 3 2')
>>> spell(task, train.inputs["x"][1]), spell_solution(task, train.targets[1])
('1 3 2 4 2 . 1 3 . . . . . 2 4 1', '1 3 2 4 2 4 1 3 4 1 3 2 3 2 4 1')
"""

import numpy as np

from archlang.tasks.kit.distinct import Fingerprints, draw_distinct, table_fingerprints
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.random_stream import RandomStream, ScalarStream
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.sudoku_grids import draw_puzzle, shuffle
from archlang.tasks.kit.task import Kind, ShippedTask, Task, Unit, class_names, spell
from archlang.types.statics import Interval

__all__ = ["Interval", "Sudoku", "spell", "spell_solution"]

_BATCH = 1 << 12
# A grid of which fewer cells can be blank is drawn again, this often.
_TRIES = 50


class Sudoku(ShippedTask):
    """The task. `puzzles` puzzles of a split are shuffled into its items."""

    side: int
    test: Interval
    puzzles: int

    disjoint = ("train", "test")
    kind = Kind.TAGGING
    breakdown = "blanks"
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")

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
        """Returns puzzles and their solutions: [count, side²] each.

        Raises:
            TaskError: too few cells of a grid can be blank."""
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


def spell_solution(task: Task, classes: np.ndarray) -> str:
    """Returns the digits of classes as text."""
    return " ".join(class_names(task)[digit] for digit in classes)
