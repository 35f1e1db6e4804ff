"""What the tasks over a user's own files of texts share: their statics, splits, vocabulary and labels."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from itertools import chain
from typing import ClassVar, Self

import numpy as np

from archlang.diagnostics.names import listed
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import UNKNOWN, Cut, Lexicon, filled, most_frequent
from archlang.tasks.kit.ragged import Integers
from archlang.tasks.kit.task import ShippedTask
from archlang.tasks.kit.user_files import Line, UserFiles, check_forms, one_label


class UserFileTask(ShippedTask):
    """A task over a user's own files. Its vocabulary is the most frequent `words` of the text columns of train,
    `<unk>`, and then `signs`. Its labels, if it has any, are in the second column."""

    path: str
    valid: str
    test: str
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

    def check(self) -> None:
        check_forms(self.name, self.files(), len(self.user_files.columns))

    @abstractmethod
    def columns(self) -> Mapping[str, Cut]:
        """Returns the columns to read, each with the function that cuts its text into words."""

    @cached_property
    def user_files(self) -> UserFiles:
        splits = ("valid", "test")
        others = {split: path for split in splits if (path := getattr(self, split))}
        shares = {split: share for split in splits if (share := getattr(self, f"{split}_share"))}
        group = {} if self.group == "none" else {self.group: self.columns().get(self.group, one_label)}
        return UserFiles(self.name, self.path, others, {**self.columns(), **group}, self.header, shares)

    def files(self) -> tuple[str, ...]:
        return tuple(path for path in (self.path, self.valid, self.test) if path)

    def split_names(self) -> tuple[str, ...]:
        return self.user_files.split_names()

    @property
    def text_columns(self) -> tuple[int, ...]:
        """The indices of the columns that hold the texts of the fields."""
        return (0,)

    # The vocabulary, the labels and the groups of the files, or those of a run

    @cached_property
    def lexicon(self) -> Lexicon:
        texts = (line.cells[column] for line in self.user_files.lines("train") for column in self.text_columns)
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
        lines = chain.from_iterable(map(self.user_files.lines, self.split_names()))
        return tuple(dict.fromkeys((*self.stored[2], *_ordered(map(self._group_of, lines)))))

    def _group_of(self, line: Line) -> str:
        return " ".join(line.cells[list(self.user_files.columns).index(self.group)])

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


class LabelledFileTask(UserFileTask):
    """A task whose second column has labels of texts. The labels of train are its classes."""

    labels: int

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The label of each class.

        Raises:
            TaskError: there are more than `labels`."""
        texts = _ordered(label for line in self.user_files.lines("train") for label in line.cells[1])
        if len(texts) > self.labels:
            raise mistakes.too_many_labels(self.name, self.labels, len(texts))
        return texts

    def encode_labels(self, split: str, lines: Sequence[Line]) -> list[list[int]]:
        """Returns the numbers of the labels of each row.

        Raises:
            TaskError: train has no such label."""
        numbers = {label: number for number, label in enumerate(self.class_names)}
        for line in lines:
            if unknown := sorted(set(line.cells[1]) - numbers.keys()):
                reason = f"the label `{unknown[0]}` is none of those of training: {listed(numbers)}"
                raise mistakes.bad_line(self.user_files.path_of(split), line.number, reason)
        return [[numbers[label] for label in line.cells[1]] for line in lines]


def _ordered(labels: Iterable[str]) -> tuple[str, ...]:
    """Returns labels once, in numerical order if all are whole numbers, else alphabetically."""
    unique = set(labels)
    return tuple(sorted(unique, key=int) if all(label.isdecimal() for label in unique) else sorted(unique))
