"""Puzzles and their solutions in a user's own CSV files: of each row a source, a puzzle, its solution and a rating.

The data sets of Wang et al. (2025), Hierarchical Reasoning Model, have this form. An error names the line and quotes
nothing of it (`archlang.tasks.kit.user_files`)."""

import csv
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from archlang.data.compression import ENDINGS
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.user_files import lines_of

_COLUMNS = 4
Problem = Callable[[str, str], str]


def read_puzzles(
    task: str, path: str, numbers: Mapping[str, int], split: str, sizes: Mapping[str, int], seed: int, problem: Problem
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns random rows of a file for a split: puzzles [N, cells], solutions [N, cells] and ratings [N].

    Args:
        numbers: The number of each character of a puzzle or a solution.
        sizes: How many of the rows, in a random order, each split of the file takes, one split after another. If there
            are too few rows, the last splits have fewer.
        problem: Says what is wrong with a puzzle and its solution; empty if nothing is.

    Raises:
        TaskError: the file is missing, a row is malformed, or puzzles have different sizes."""
    count = sum(1 for _ in _rows(task, path))
    order = RandomStream(task, "rows", seed).order(count)
    first = 0
    for name, size in sizes.items():
        if name == split:
            break
        first += size
    chosen = set(order[first : first + sizes[split]].tolist())
    known = "".join(numbers)
    puzzles, solutions, ratings = list[bytes](), list[bytes](), list[int]()
    for index, (number, cells) in enumerate(_rows(task, path)):
        if index not in chosen:
            continue
        if len(cells) != _COLUMNS:
            raise mistakes.bad_line(path, number, f"expected {_COLUMNS} columns, found {len(cells)}")
        _, puzzle, solution, rating = cells
        if puzzle.strip(known) or solution.strip(known):
            reason = "a puzzle or its solution has a character other than " + " ".join(map(repr, numbers))
        else:
            reason = problem(puzzle, solution)
        if not reason and puzzles and len(puzzle) != len(puzzles[0]):
            reason = f"the puzzle has {len(puzzle)} cells, and an earlier one has {len(puzzles[0])}"
        if not reason and not rating.strip().isdecimal():
            reason = "the rating is not a whole number"
        if reason:
            raise mistakes.bad_line(path, number, reason)
        puzzles.append(puzzle.encode())
        solutions.append(solution.encode())
        ratings.append(int(rating))
    if not puzzles:
        raise mistakes.no_rows(path, split)
    codes = np.zeros(256, dtype=np.uint8)
    codes[list(known.encode())] = list(numbers.values())
    grids = (np.frombuffer(b"".join(rows), dtype=np.uint8).reshape(len(rows), -1) for rows in (puzzles, solutions))
    inputs, targets = (codes[grid] for grid in grids)
    return inputs, targets, np.asarray(ratings, dtype=np.int64)


def _rows(task: str, path: str) -> Iterator[tuple[int, list[str]]]:
    """Yields the number and the columns of each line but the first, which names the columns."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    if Path(path.removesuffix(ending)).suffix != ".csv":
        raise mistakes.not_csv(path)
    for index, (number, line) in enumerate(lines_of(task, path, ending)):
        if index:
            try:
                yield number, next(csv.reader([line]))
            except csv.Error:
                raise mistakes.bad_line(path, number, "it is not a row of CSV") from None
