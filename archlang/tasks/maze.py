"""Maze: draw the path from the start to the goal.

As in the data of "Hierarchical Reasoning Model" (Wang et al., 2025), whose mazes have several paths; these are trees.

>>> task = Maze(side=5, train=Interval(2, 4), test=Interval(6, 6), train_size=10)
>>> train = task.generate("train", seed=0)
>>> print(show(task, train.inputs["x"][0], train.targets[0]))
##### #####
#...# #...#
#.### #.###
#G.S# #GoS#
##### #####
>>> print(show(task, train.inputs["x"][1], train.targets[1]))
##### #####
#..G# #..G#
###.# ###o#
#S..# #Soo#
##### #####
"""

from collections import deque

import numpy as np

from archlang.tasks.kit.drawing import Fingerprints, RandomStream, ScalarStream, draw_distinct, table_fingerprints
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Kind, ShippedTask, Task, Unit, class_names, spell
from archlang.types.statics import Interval

WALL, FREE, START, GOAL, PATH = range(5)
VOCABULARY = ("#", ".", "S", "G")
CLASS_NAMES = (*VOCABULARY, "o")
_BATCH = 1 << 8


class Maze(ShippedTask):
    """Rooms are the cells with odd coordinates, counted from 0; the last row and column of an even `side` are
    walls."""

    side: int
    test: Interval

    disjoint = ("train", "test")
    kind = Kind.TAGGING
    breakdown = "length"
    unit = Unit.SEQUENCE
    vocabulary = VOCABULARY
    class_names = CLASS_NAMES

    def check(self) -> None:
        rooms = ((self.side - 1) // 2) ** 2
        self.check_ranges(("train", "test"), 1, max(2 * rooms - 2, 1))
        self.check_even(("train", "test"))

    def make(self, split: str, seed: int) -> Split:
        lengths = self.test if split == "test" else self.train
        rng = RandomStream(self.name, self.side, split, lengths.low, lengths.high, seed)
        scalars = ScalarStream(rng)

        def draw(count: int) -> tuple[Split, Fingerprints]:
            mazes = [self._maze(scalars, lengths) for _ in range(count)]
            solved = np.asarray([maze for maze in mazes if maze is not None], dtype=np.uint8).reshape(-1, self.side**2)
            x = np.where(solved == PATH, FREE, solved).astype(np.uint8)
            return maze_split(x, solved), table_fingerprints(x)

        size = self.size(split)
        return draw_distinct(self.name, split, size, draw, _BATCH, "a larger `side`, or shorter paths")

    def _maze(self, rng: ScalarStream, lengths: Interval) -> list[int] | None:
        cells, side = [WALL] * self.side**2, self.side
        rooms = [row * side + column for row in range(1, side - 1, 2) for column in range(1, side - 1, 2)]
        stack = [rooms[rng.below(len(rooms))]]
        cells[stack[0]] = FREE
        while stack:
            room = stack[-1]
            row, column = divmod(room, side)
            steps = [
                step
                for step, inside in ((-side, row > 2), (side, row + 2 < side - 1),
                                     (-1, column > 2), (1, column + 2 < side - 1))
                if inside and cells[room + 2 * step] == WALL
            ]  # fmt: skip
            if not steps:
                stack.pop()
                continue
            step = steps[rng.below(len(steps))]
            cells[room + step] = cells[room + 2 * step] = FREE
            stack.append(room + 2 * step)
        start = rooms[rng.below(len(rooms))]
        before = reach(cells, side, start)
        distances = {start: 0}
        for cell, previous in before.items():
            distances.setdefault(cell, distances[previous] + 1)
        goals = [room for room in rooms if lengths.low <= distances[room] <= lengths.high and room != start]
        if not goals:
            return None
        goal = goals[rng.below(len(goals))]
        cell = before[goal]
        while cell != start:
            cells[cell] = PATH
            cell = before[cell]
        cells[start], cells[goal] = START, GOAL
        return cells


def reach(cells: list[int], side: int, start: int) -> dict[int, int]:
    """Returns the cell before each cell that can be reached from the start, nearest first."""
    before, queue = {start: start}, deque([start])
    while queue:
        cell = queue.popleft()
        for step in (-side, side, -1, 1):
            if cells[cell + step] != WALL and cell + step not in before:
                before[cell + step] = cell
                queue.append(cell + step)
    return before


def maze_split(mazes: np.ndarray, solved: np.ndarray, step: int = 1) -> Split:
    """Returns mazes [N, cells] and the same with the path drawn as items, grouped by the length of the path in steps of
    `step`."""
    lengths = (solved == PATH).sum(axis=1).astype(np.int64) + 1
    return Split({"x": Ragged.table(mazes)}, Ragged.table(solved), groups={"length": lengths // step * step})


def show(task: Task, maze: np.ndarray, solved: np.ndarray) -> str:
    """Returns the rows of a maze as text, and beside each the same with the path drawn."""
    side = round(len(maze) ** 0.5)
    rows = []
    for row in range(0, len(maze), side):
        cells = spell(task, maze[row : row + side]).replace(" ", "")
        rows.append(f"{cells} {''.join(class_names(task)[cell] for cell in solved[row : row + side])}")
    return "\n".join(rows)
