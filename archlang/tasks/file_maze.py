"""Draw the path from the start to the goal of the mazes in a user's own file.

>>> from archlang.tasks.maze import show
>>> path = getfixture("tmp_path") / "train.csv"
>>> _ = path.write_text("source,question,answer\\nmine,S ##  ##G,So##oo##G\\n")
>>> task = FileMaze(path=str(path), train_size=1, shuffles=True)
>>> train = task.generate("train", seed=0)
>>> print(show(task, train.inputs["x"][0], train.targets[0]))
S.# So#
#.. #oo
##G ##G
>>> print(show(task, train.inputs["x"][1], train.targets[1]))
#.G #oG
..# oo#
S## S##
"""

from math import isqrt
from typing import ClassVar

import numpy as np

from archlang.tasks.kit.file_tasks import PuzzleFileTask
from archlang.tasks.kit.split import Split
from archlang.tasks.maze import CLASS_NAMES, FREE, GOAL, PATH, START, VOCABULARY, WALL, maze_split

_NUMBERS = {"#": WALL, " ": FREE, "S": START, "G": GOAL, "o": PATH}
_STEP = 10


class FileMaze(PuzzleFileTask):
    shuffles: bool

    breakdown = "length"
    vocabulary = VOCABULARY
    also: ClassVar = {" ": "."}
    class_names = CLASS_NAMES

    def make(self, split: str, seed: int) -> Split:
        mazes, solved, _ = self.rows(split, seed, _NUMBERS, _problem)
        if split == "train" and self.shuffles:
            mazes, solved = _symmetries(mazes), _symmetries(solved)
        return maze_split(mazes, solved, step=_STEP)


def _symmetries(grids: np.ndarray) -> np.ndarray:
    """Returns grids [N, cells], followed by their rotations and reflections: [8 N, cells]."""
    side = isqrt(grids.shape[1])
    squares = grids.reshape(-1, side, side)
    turned = [np.rot90(each, turns, (1, 2)) for each in (squares, squares.transpose(0, 2, 1)) for turns in range(4)]
    return np.concatenate(turned).reshape(-1, side**2)


def _problem(maze: str, solution: str) -> str:
    if len(maze) != len(solution) or isqrt(len(maze)) ** 2 != len(maze) or not maze:
        return f"the maze has {len(maze)} cells and its solution {len(solution)}, not the same square number"
    if "o" in maze:
        return "the path is drawn in the maze"
    if solution.replace("o", " ") != maze:
        return "the solution changes a cell of the maze other than a free one"
    return ""
