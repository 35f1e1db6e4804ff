"""A maze has one path from its start to its goal, which the answer draws."""

from collections import deque

import pytest

from archlang.tasks.maze import CLASS_NAMES, Maze
from archlang.types.statics import Interval
from tests.tasks.every import answers_of

SMALL = Maze(side=9, train=Interval(2, 8), test=Interval(10, 20), train_size=40, valid_size=10, test_size=20)


def shortest_path(maze: str, side: int) -> tuple[int, int]:
    """Returns the length of the shortest path, and the number of free cells from which the goal can be reached."""
    distances, queue = {maze.index("S"): 0}, deque([maze.index("S")])
    while queue:
        cell = queue.popleft()
        for step in (1, -1, side, -side):
            if maze[cell + step] != "#" and cell + step not in distances:
                distances[cell + step] = distances[cell] + 1
                queue.append(cell + step)
    return distances[maze.index("G")], len(distances)


@pytest.mark.parametrize("split", SMALL.split_names())
def test_the_answer_draws_the_path(split: str) -> None:
    items = SMALL.generate(split, 0)
    lengths = SMALL.test if split == "test" else SMALL.train
    for index in range(len(items)):
        maze = "".join(CLASS_NAMES[cell] for cell in items.inputs["x"][index])
        solved = "".join(CLASS_NAMES[cell] for cell in answers_of(items)[index])
        length, reached = shortest_path(maze, 9)
        assert solved.replace("o", ".") == maze
        assert solved.count("o") + 1 == length == items.groups["length"][index]
        assert lengths.low <= length <= lengths.high
        # Only the drawn cells, the start and the goal are left: they must join.
        assert shortest_path(solved.replace(".", "#"), 9) == (length, length + 1)
        assert reached == 9 * 9 - maze.count("#"), "a tree has no cell apart"
