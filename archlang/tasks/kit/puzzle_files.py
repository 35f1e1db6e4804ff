"""Puzzles and their solutions in a user's own files.

The columns are those of the data sets of Wang et al. (2025), Hierarchical Reasoning Model. An error names the line and
quotes nothing of it (`archlang.tasks.kit.user_files`)."""

from collections.abc import Callable, Mapping
from typing import ClassVar

import numpy as np

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import Lexicon
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.task import Kind, ShippedTask, Unit
from archlang.tasks.kit.user_files import check_forms, rows_of

Problem = Callable[[str, str], str]
Puzzles = tuple[np.ndarray, np.ndarray, np.ndarray]
"""puzzles [N, cells], solutions [N, cells] and ratings [N]"""


class PuzzleFileTask(ShippedTask):
    """A task over a user's files of puzzles, whose columns `puzzle` and `solution` name. `train_size`, `valid_size` and
    `test_size` count rows of the files."""

    path: str
    test: str
    puzzle: str
    solution: str

    # The tokens, and their other spellings in a file.
    vocabulary: ClassVar[tuple[str, ...]]
    also: ClassVar[Mapping[str, str]]
    kind = Kind.TAGGING
    in_distribution = ("train", "valid", "test")
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")

    def check(self) -> None:
        check_forms(self.name, self.files(), len(self.columns()))

    @property
    def lexicons(self) -> dict[str, Lexicon]:
        return {"x": Lexicon(self.vocabulary, also=self.also, cut="characters")}

    def columns(self) -> tuple[str, ...]:
        return (self.puzzle, self.solution)

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.test) if path)

    def split_names(self) -> tuple[str, ...]:
        sizes = {"train": True, "valid": self.valid_size, "test": self.test}
        return tuple(split for split, exists in sizes.items() if exists or not self.path)

    def rows(self, split: str, seed: int, numbers: Mapping[str, int], problem: Problem) -> Puzzles:
        """Returns random rows of a file for a split. If there are too few rows, the last splits have fewer.

        Args:
            numbers: The number of each character of a puzzle or a solution.
            problem: Says what is wrong with a puzzle and its solution; empty if nothing is.

        Raises:
            TaskError: the file is missing, a row is malformed, or puzzles have different sizes."""
        # The splits of a file take its rows, in a random order, one split after another.
        sizes = {"test": self.test_size} if split == "test" else {"train": self.train_size, "valid": self.valid_size}
        path, columns = self.test if split == "test" else self.path, self.columns()
        count = sum(1 for _ in rows_of(self.name, path, columns))
        order = RandomStream(self.name, "rows", seed).order(count)
        first = 0
        for name, size in sizes.items():
            if name == split:
                break
            first += size
        chosen = set(order[first : first + sizes[split]].tolist())
        characters = "".join(numbers)
        puzzles, solutions, ratings = list[bytes](), list[bytes](), list[int]()
        for index, (number, _, cells) in enumerate(rows_of(self.name, path, columns)):
            if index not in chosen:
                continue
            puzzle, solution, rating = ("".join(cell) for cell in (*cells, *["0"] * (3 - len(columns))))
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
