"""What the tasks over a user's own files share: their files and columns, and the vocabulary, the labels and the groups
of texts, or the cells of puzzles."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import ClassVar, Self

import numpy as np

from archlang.errors.names import listed
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import UNKNOWN, Cut, Lexicon, filled, most_frequent
from archlang.tasks.kit.ragged import Integers
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.task import Kind, ShippedTask, Unit
from archlang.tasks.kit.user_files import SPLITS, Line, check_forms, one_label, read_lines, rows_of

Problem = Callable[[str, str], str]
Puzzles = tuple[np.ndarray, np.ndarray, np.ndarray]
"""puzzles [N, cells], solutions [N, cells] and ratings [N]"""


class FileTask(ShippedTask):
    """A task over the files that the statics `path`, `valid` and `test` name."""

    path: str
    test: str

    @abstractmethod
    def columns(self) -> Mapping[str, Cut]:
        """Returns the columns to read, each with the function that cuts its text into words."""

    def files(self) -> tuple[str, ...]:
        return tuple(path for static in ("path", "valid", "test") if (path := getattr(self, static, "")))

    def check(self) -> None:
        check_forms(self.name, self.files(), len(self.columns()))


class TextFileTask(FileTask):
    """A task over texts. Its vocabulary is the most frequent `words` of the text columns of train, `<unk>`, and then
    `signs`. Its labels, if it has any, are in the second column."""

    valid: str
    valid_share: float
    test_share: float
    header: bool
    words: int
    by: str
    group: str

    # The fields of the model, and the tokens after `<unk>`.
    fields: ClassVar[tuple[str, ...]] = ("x",)
    signs: ClassVar[tuple[str, ...]] = ()
    # The words, the labels and the groups of a run.
    stored: ClassVar[tuple[Sequence[str], ...]] = ((), (), ())
    own_groups: ClassVar[tuple[str, ...]] = ("length",)
    version = 2

    @abstractmethod
    def own_columns(self) -> Mapping[str, Cut]:
        """Returns the columns of the task, without the one that `group` names."""

    def columns(self) -> Mapping[str, Cut]:
        own = self.own_columns()
        return dict(own) if self.group == "none" else {**own, self.group: own.get(self.group, one_label)}

    @property
    def text_columns(self) -> tuple[int, ...]:
        """The indices of the columns that hold the texts of the fields."""
        return (0,)

    # The rows by split

    def split_names(self) -> tuple[str, ...]:
        """Returns the splits of the files; every split if no file is named."""
        if not self.path:
            return SPLITS
        present = {"train", *(split for split in SPLITS[1:] if getattr(self, split) or self._shares[split])}
        if len(present) == 1:
            present.update(self._parts)
        return tuple(split for split in SPLITS if split in present)

    def path_of(self, split: str) -> str:
        """Returns the path of the file that holds a split."""
        return getattr(self, split, "") or self.path

    def lines(self, split: str) -> list[Line]:
        """Returns the rows of a split.

        Raises:
            TaskError: a file is missing, or a row is malformed."""
        path = getattr(self, split, "")
        return self._read(path).get("", []) if path else self._parts[split]

    @property
    def _shares(self) -> dict[str, float]:
        return {"valid": self.valid_share, "test": self.test_share}

    @cached_property
    def _parts(self) -> dict[str, list[Line]]:
        """The rows of the training file by split: by its column `split`, or by the shares."""
        by_split, shares = self._read(self.path), {split: share for split, share in self._shares.items() if share}
        if "" not in by_split:
            if shares or self.valid or self.test:
                raise mistakes.splits_twice(self.path)
            if "train" not in by_split:
                raise mistakes.no_training_lines(self.path)
            return by_split
        parts: dict[str, list[Line]] = {split: [] for split in ("train", *shares)}
        for line in by_split[""]:
            place = line.place if shares else 1.0
            for split, share in shares.items():
                place -= share
                if place < 0:
                    parts[split].append(line)
                    break
            else:
                parts["train"].append(line)
        return parts

    def _read(self, path: str) -> dict[str, list[Line]]:
        return read_lines(self.name, path, self.columns(), self.header)

    # The vocabulary, the labels and the groups of the files, or those of a run

    @cached_property
    def lexicon(self) -> Lexicon:
        texts = (line.cells[column] for line in self.lines("train") for column in self.text_columns)
        return self._lexicon(most_frequent(texts, self.words))

    def _lexicon(self, words: Sequence[str]) -> Lexicon:
        texts = (*filled(words, self.words), UNKNOWN, *self.signs)
        return Lexicon(texts, unknown=self.words, known=len(words), cut=self.by)

    @property
    def lexicons(self) -> dict[str, Lexicon]:
        return dict.fromkeys(self.fields, self.lexicon)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self.lexicon.texts

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.own_groups, self.breakdown)))

    @property
    def breakdown(self) -> str:
        return "length" if self.group == "none" else self.group

    @cached_property
    def _group_texts(self) -> tuple[str, ...]:
        """The texts of the column `group` in all splits; those of a run come first."""
        lines = chain.from_iterable(map(self.lines, self.split_names()))
        return tuple(dict.fromkeys((*self.stored[2], *_ordered(map(self._group_of, lines)))))

    def _group_of(self, line: Line) -> str:
        return " ".join(line.cells[list(self.columns()).index(self.group)])

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {} if self.group == "none" else {self.group: self._group_texts}

    def grouped(self, lines: Sequence[Line], **own: Integers) -> dict[str, Integers]:
        """Returns the groups of rows: those of the task, and the column that `group` names."""
        if self.group != "none":
            numbers = {text: number for number, text in enumerate(self._group_texts)}
            own[self.group] = np.asarray([numbers[self._group_of(line)] for line in lines], dtype=np.int64)
        return own

    def restored(self, words: Sequence[str], classes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Self:
        """Returns the task with the words of its lexicon, the labels and the groups that a run has recorded."""
        task = copy(self)
        stored = (words, classes, groups.get(self.group, ()))
        task.__dict__.update(lexicon=self._lexicon(words), class_names=classes, stored=stored)
        return task


class LabelledFileTask(TextFileTask):
    """A task whose second column has labels of texts. The labels of train are its classes."""

    labels: int

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The label of each class.

        Raises:
            TaskError: there are more than `labels`."""
        texts = _ordered(label for line in self.lines("train") for label in line.cells[1])
        if len(texts) > self.labels:
            raise mistakes.too_many_labels(self.labels, self.name, len(texts))
        return texts

    def encode_labels(self, split: str, lines: Sequence[Line], problem: Callable[[Line], str]) -> list[list[int]]:
        """Returns the numbers of the labels of each row. `problem` says what is wrong with a row; empty if nothing is.

        Raises:
            TaskError: a row is wrong, or train has no such label."""
        numbers = {label: number for number, label in enumerate(self.class_names)}
        for line in lines:
            reason = problem(line)
            if not reason and (unknown := sorted(set(line.cells[1]) - numbers.keys())):
                reason = f"the label `{unknown[0]}` is none of those of training: {listed(numbers)}"
            if reason:
                raise mistakes.bad_line(line.number, self.path_of(split), reason)
        return [[numbers[label] for label in line.cells[1]] for line in lines]


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns labels once, in numerical order if all are whole numbers, else alphabetically."""
    unique = set(labels)
    return tuple(sorted(unique, key=int) if all(label.isdecimal() for label in unique) else sorted(unique))


class PuzzleFileTask(FileTask):
    """A task over puzzles, whose columns `puzzle` and `solution` name: those of the data sets of Wang et al. (2025),
    Hierarchical Reasoning Model. `train_size`, `valid_size` and `test_size` count rows of the files."""

    puzzle: str
    solution: str

    # The tokens, and their other spellings in a file.
    vocabulary: ClassVar[tuple[str, ...]]
    also: ClassVar[Mapping[str, str]]
    kind = Kind.TAGGING
    in_distribution = SPLITS
    unit = Unit.SEQUENCE
    metrics = ("accuracy", "token_accuracy")

    @property
    def lexicons(self) -> dict[str, Lexicon]:
        return {"x": Lexicon(self.vocabulary, also=self.also, cut="characters")}

    def columns(self) -> Mapping[str, Cut]:
        return dict.fromkeys((self.puzzle, self.solution), tuple)

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
        path, columns = self.test if split == "test" else self.path, list(self.columns())
        count = sum(1 for _ in rows_of(self.name, path, columns))
        # The splits of a file take its rows, in a random order, one split after another.
        order = RandomStream(self.name, "rows", seed).order(count)
        first = self.train_size if split == "valid" else 0
        chosen = set(order[first : first + self.size(split)].tolist())
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
                raise mistakes.bad_line(number, path, reason)
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
