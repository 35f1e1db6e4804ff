"""Puzzles and their solutions in a user's own CSV files: of each row a source, a puzzle, its solution and a rating.

The data sets of Wang et al. (2025), Hierarchical Reasoning Model, have this form. An error names the line and quotes
nothing of it (`archlang.tasks.kit.user_files`)."""

import csv
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from archlang.data.compression import ENDINGS
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_sizes, check_split
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit
from archlang.tasks.kit.user_files import lines_of

_COLUMNS = 4
Problem = Callable[[str, str], str]
Puzzles = tuple[np.ndarray, np.ndarray, np.ndarray]
"""puzzles [N, cells], solutions [N, cells] and ratings [N]"""


@dataclass(frozen=True, kw_only=True)
class PuzzleFileTask(ABC):
    """A task over a user's files of puzzles. `train_size`, `valid_size` and `test_size` count rows of the files."""

    path: str = ""
    test: str = ""
    train_size: int = 1_000
    valid_size: int = 0
    test_size: int = 1_000

    name: ClassVar[str]
    kind = Kind.TAGGING
    in_distribution = ("train", "valid", "test")
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")
    version = 1

    def __post_init__(self) -> None:
        check_sizes(self.name, self)

    @abstractmethod
    def generate(self, split: str, seed: int) -> Split:
        """Returns the rows of a split as items."""

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.test) if path)

    def split_names(self) -> tuple[str, ...]:
        sizes = {"train": True, "valid": self.valid_size, "test": self.test}
        return tuple(split for split, exists in sizes.items() if exists or not self.path)

    def rows(self, split: str, seed: int, numbers: Mapping[str, int], problem: Problem) -> Puzzles:
        """Returns the rows of a split, as `read_puzzles`.

        Raises:
            TaskError: there is no such split, no file is named, or the file is missing or malformed."""
        check_split(self.name, split, self.split_names())
        if not self.path:
            raise mistakes.no_path(self.name, "train.csv")
        sizes = {"test": self.test_size} if split == "test" else {"train": self.train_size, "valid": self.valid_size}
        path = self.test if split == "test" else self.path
        return read_puzzles(self.name, path, numbers, split, sizes, seed, problem)


def read_puzzles(
    task: str, path: str, numbers: Mapping[str, int], split: str, sizes: Mapping[str, int], seed: int, problem: Problem
) -> Puzzles:
    """Returns random rows of a file for a split.

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
    characters = "".join(numbers)
    puzzles, solutions, ratings = list[bytes](), list[bytes](), list[int]()
    for index, (number, cells) in enumerate(_rows(task, path)):
        if index not in chosen:
            continue
        if len(cells) != _COLUMNS:
            raise mistakes.bad_line(path, number, f"expected {_COLUMNS} columns, found {len(cells)}")
        _, puzzle, solution, rating = cells
        if puzzle.strip(characters) or solution.strip(characters):
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
    codes[list(characters.encode())] = list(numbers.values())
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
