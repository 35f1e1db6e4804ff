"""What the tasks over a user's own files share: their statics, splits, vocabulary and labels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_choice
from archlang.tasks.kit.lexicon import UNKNOWN, Lexicon, filled, most_frequent
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.user_files import CUTS, Cut, Line, UserFiles


@dataclass(frozen=True, kw_only=True)
class UserFileTask(ABC):
    """A task over a user's own files. Its vocabulary is the most frequent `words` of the text columns of train,
    `<unk>`, and then `signs`."""

    path: str = ""
    valid: str = ""
    test: str = ""
    words: int = 1_000
    by: str = "words"

    name: ClassVar[str]
    # The indices of the columns that hold texts, and the tokens after `<unk>`.
    text_columns: ClassVar[tuple[int, ...]] = (0,)
    signs: ClassVar[tuple[str, ...]] = ()
    breakdown = "length"
    in_distribution = ("train", "valid")
    version = 1

    def __post_init__(self) -> None:
        check_choice(self.name, "by", self.by, CUTS)

    @abstractmethod
    def columns(self) -> Mapping[str, Cut]:
        """Returns the columns to read, each with the function that cuts its text into words."""

    @abstractmethod
    def generate(self, split: str, seed: int) -> Split:
        """Returns the lines of a split as items; they do not depend on the seed."""

    @property
    def user_files(self) -> UserFiles:
        return UserFiles(self.name, self.path, {"valid": self.valid, "test": self.test}, self.columns())

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.valid, self.test) if path)

    def split_names(self) -> tuple[str, ...]:
        return self.user_files.split_names()

    @property
    def lexicon(self) -> Lexicon:
        texts = (line.cells[column] for line in self.user_files.lines("train") for column in self.text_columns)
        words = filled(most_frequent(texts, self.words), self.words)
        return Lexicon((*words, UNKNOWN, *self.signs), unknown=self.words)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return self.lexicon.texts


@dataclass(frozen=True)
class Labels:
    """The labels in one column of train by number: in numerical order if all are whole numbers, else alphabetically.

    Raises:
        TaskError: there are more than `most` labels."""

    files: UserFiles
    column: int
    numbers: Mapping[str, int]

    @staticmethod
    def of(files: UserFiles, column: int, most: int) -> Labels:
        labels = {label for line in files.lines("train") for label in line.cells[column]}
        ordered = sorted(labels, key=int) if all(label.isdecimal() for label in labels) else sorted(labels)
        if len(ordered) > most:
            raise mistakes.too_many_labels(files.task, most, len(ordered))
        return Labels(files, column, {label: number for number, label in enumerate(ordered)})

    def encode_one(self, split: str, line: Line) -> int:
        """Returns the number of the only label of a line.

        Raises:
            TaskError: the line has several labels, or train has no such label."""
        if len(line.cells[self.column]) != 1:
            reason = f"it has {len(line.cells[self.column])} labels, and a text has one"
            raise mistakes.bad_line(self.files.path_of(split), line.number, reason)
        return self.encode(split, line)[0]

    def encode(self, split: str, line: Line) -> list[int]:
        """Returns the numbers of the labels of a line.

        Raises:
            TaskError: train has no such label."""
        try:
            return [self.numbers[label] for label in line.cells[self.column]]
        except KeyError:
            raise mistakes.bad_line(self.files.path_of(split), line.number, "no line of train has this label") from None
