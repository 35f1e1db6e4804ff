"""Fill the blank cells of the Sudoku puzzles in a user's own file.

>>> path = getfixture("tmp_path") / "train.csv"
>>> solution = "123456789456789123789123456231564897564897231897231564312645978645978312978312645"
>>> _ = path.write_text(f"source,question,answer,rating\\nmine,{solution[:40]}.{solution[41:]},{solution},7\\n")
>>> task = FileSudoku(path=str(path), train_size=1, valid_size=0, shuffles=1)
>>> train = task.generate("train", seed=0)
>>> task.spell(train.inputs["x"][0][36:45]), task.spell(train.targets[0][36:45] + 1)
('5 6 4 8 . 7 2 3 1', '5 6 4 8 9 7 2 3 1')
>>> task.spell(train.inputs["x"][1][36:45]), task.spell(train.targets[1][36:45] + 1)
('4 5 8 6 9 1 7 3 2', '4 5 8 6 9 1 7 3 2')
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.file_tasks import PuzzleFileTask
from archlang.tasks.kit.lexicon import Cut
from archlang.tasks.kit.split import Split
from archlang.tasks.sudoku import puzzle_split, shuffle

_SIDE = 9
_RATINGS = 10
_NUMBERS = {".": 0, **{str(digit): digit for digit in range(10)}}


class FileSudoku(PuzzleFileTask):
    shuffles: int
    rating: str

    breakdown = "rating"
    groups = ("rating", "blanks")
    vocabulary = (".", *"123456789")
    also: ClassVar = {"0": "."}
    class_names = tuple("123456789")

    def columns(self) -> Mapping[str, Cut]:
        return {**super().columns(), self.rating: tuple}

    def make(self, split: str, seed: int) -> Split:
        puzzles, solutions, ratings = self.rows(split, seed, _NUMBERS, _problem)
        if split == "train" and self.shuffles:
            repeated = np.repeat(np.arange(len(puzzles)), self.shuffles)
            shuffled = shuffle(RandomStream(self.name, seed), _SIDE, puzzles[repeated], solutions[repeated])
            puzzles, solutions = (np.concatenate(pair) for pair in zip((puzzles, solutions), shuffled, strict=True))
            ratings = np.concatenate([ratings, ratings[repeated]])
        return puzzle_split(puzzles, solutions, rating=ratings // _RATINGS * _RATINGS)


def _problem(puzzle: str, solution: str) -> str:
    if len(puzzle) != _SIDE**2 or len(solution) != _SIDE**2:
        return f"the puzzle has {len(puzzle)} cells and its solution {len(solution)}, not {_SIDE**2}"
    if not set(solution) <= set("123456789"):
        return "the solution has a blank cell"
    if any(cell not in (".", "0", digit) for cell, digit in zip(puzzle, solution, strict=True)):
        return "the solution changes a cell of the puzzle"
    return ""
