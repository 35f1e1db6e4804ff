"""What the tasks over a user's own files share: their files and columns, and the vocabulary, the labels and the groups
of texts, or the cells of puzzles."""

import glob
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from archlang.errors.names import listed
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.cache import Facts, entry
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.lexicon import UNKNOWN, Cut, Lexicon, filled
from archlang.tasks.kit.split import Ragged, Split, Truths, join_splits
from archlang.tasks.kit.streams import check_path
from archlang.tasks.kit.task import Kind, ShippedTask, Unit
from archlang.tasks.kit.user_files import SPLITS, Corpus, Rows, UserFiles, check_forms, files_of, one_label, rows_of

Problem = Callable[[str, str], str]
Puzzles = tuple[np.ndarray, np.ndarray, np.ndarray]
"""puzzles [N, cells], solutions [N, cells] and ratings [N]"""


class FileTask(ShippedTask):
    """A task over the files that the statics `path`, `valid` and `test` name."""

    path: str
    test: str

    # Whether a file that is no table is one text, as `UserFiles.documents` says.
    documents = False
    streamed_splits: tuple[str, ...] = ()

    @abstractmethod
    def columns(self) -> Mapping[str, Cut]:
        """Returns the columns to read, each with the function that cuts its text into words."""

    def files(self) -> tuple[str, ...]:
        # A stream is not read before it is used.
        stored = self._paths()[len(self.streamed_splits) :]
        return tuple(file for path in stored for file in files_of(path))

    def _paths(self) -> tuple[str, ...]:
        return tuple(path for static in ("path", "valid", "test") if (path := getattr(self, static, "")))

    def check(self) -> None:
        # Documents have one column, whose tokenizer is not read here.
        columns = 1 if self.documents else len(self.columns())
        for path in self._paths():
            check_path(self.name, path, streams=path == self.path and bool(self.streamed_splits))
            # Folders are listed when they are read: an editor checks after each key.
            if not (os.path.isdir(path) or glob.has_magic(path)):
                check_forms(self.name, [path], columns, self.documents)


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
    label_column: ClassVar[int | None] = None
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
            present.update(self._own_splits)
        return tuple(split for split in SPLITS if split in present)

    @property
    def _shares(self) -> dict[str, float]:
        return {"valid": self.valid_share, "test": self.test_share}

    @cached_property
    def _own_splits(self) -> tuple[str, ...]:
        """The splits in the column `split` of the training file; none if it has no such column, which its first row
        says."""
        source = self._source(self.path)
        first = next(source.rows(), None)
        if first is not None and first[1] is None:
            return ()
        if any((self.valid, self.test, *self._shares.values())):
            raise mistakes.splits_twice(self.path)
        own = np.unique(source.read().splits)
        if 0 not in own:
            raise mistakes.no_training_lines(self.path)
        return tuple(SPLITS[number] for number in own)

    def _source(self, path: str) -> UserFiles:
        columns = self.columns()
        group = None if self.group == "none" else list(columns).index(self.group)
        has_places = path == self.path and any(self._shares.values())
        files = files_of(path)
        return UserFiles(self.name, files, tuple(columns.items()), self.header, group, has_places, self.documents)

    def _corpus_and_rows(self, split: str) -> tuple[Corpus, Truths]:
        own_file: str = getattr(self, split, "")
        is_drawn = not own_file and not self._own_splits  # before the texts are read
        corpus = self._source(own_file or self.path).read()
        if is_drawn:
            return corpus, self._drawn(corpus, split)
        return corpus, corpus.marked("" if own_file else split)

    def _drawn(self, corpus: Corpus, split: str) -> Truths:
        rest = np.ones(len(corpus.splits), dtype=np.bool_)
        place = corpus.places
        for other, share in self._shares.items():
            if share:
                place = place - share
                if other == split:
                    return np.asarray(rest & (place < 0))
                rest &= place >= 0
        return rest

    # The vocabulary, the labels and the groups of the files, or those of a run

    @cached_property
    def _facts(self) -> Facts:
        """The most frequent words and the labels of train, and the texts of the column `group` in all splits."""
        # Their keys open all files, so that a missing one is reported before another is read.
        sources = [self._source(path).key() for path in self._paths()]
        key = [sources, self.words, self.text_columns, self.label_column, self._shares]
        return entry(self.name, key, list, lambda _: self._find_facts()).facts

    def _find_facts(self) -> Facts:
        corpus, chosen = self._corpus_and_rows("train")
        counts = corpus.counts(self.text_columns, chosen)
        labels = () if self.label_column is None else corpus.counts((self.label_column,), chosen)
        groups: set[str] = set()
        for split in self.split_names() if self.group != "none" else ():
            others, here = self._corpus_and_rows(split)
            groups.update(map(others.text, np.unique(others.groups[here])))
        return {
            "words": corpus.most_frequent(counts, self.words),
            "labels": _sorted_labels(map(corpus.text, np.flatnonzero(labels))),
            "groups": _sorted_labels(groups),
        }

    @cached_property
    def lexicon(self) -> Lexicon:
        return self._lexicon(self._facts["words"])

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
        return tuple(dict.fromkeys((*self.stored[2], *self._facts["groups"])))

    @property
    def group_names(self) -> dict[str, tuple[str, ...]]:
        return {} if self.group == "none" else {self.group: self._group_texts}

    # The items

    def make(self, split: str, seed: int) -> Split:
        return join_splits(list(self.pieces(split, seed)))

    def pieces(self, split: str, seed: int) -> Iterator[Split]:
        """Yields the items of a split in order, some at a time."""
        if split not in self.split_names():
            raise mistakes.unknown_split(self.name, split, self.split_names())
        lexicon = self.lexicon
        corpus, chosen = self._corpus_and_rows(split)
        tokens = corpus.numbers(lexicon.ids, self.words, lexicon.dtype)
        tables = [(column, tokens) for column in self.text_columns]
        if self.label_column is not None:
            tables.append(
                (self.label_column, corpus.numbers(_numbered(getattr(self, "class_names", ())), dtype=np.int32))
            )
        groups = None if self.group == "none" else corpus.numbers(_numbered(self._group_texts))
        for rows in corpus.pieces(chosen):
            columns = ((rows.columns[column], table) for column, table in tables)
            items = self.encode(rows, *(Ragged(table[column.values], column.offsets) for column, table in columns))
            if groups is not None:
                items = replace(items, groups={**items.groups, self.group: groups[corpus.groups[rows.indices]]})
            yield items

    @abstractmethod
    def encode(self, rows: Rows, *columns: Ragged) -> Split:
        """Returns rows as items. `columns` are the tokens of the text columns, and the classes of the labels; -1 for a
        label that train lacks."""

    def restored(self, lexicon: Lexicon, classes: Sequence[str], groups: Mapping[str, Sequence[str]]) -> Self:
        """Returns the task with the words of the lexicon, the labels and the groups that a run has recorded."""
        task, words = copy(self), lexicon.texts[: lexicon.known]
        stored = (words, classes, groups.get(self.group, ()))
        task.__dict__.update(lexicon=self._lexicon(words), class_names=classes, stored=stored)
        return task


class LabelledFileTask(TextFileTask):
    """A task whose second column has labels of texts. The labels of train are its classes."""

    labels: int

    label_column = 1

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The label of each class.

        Raises:
            TaskError: there are more than `labels`."""
        texts = tuple(self._facts["labels"])
        if len(texts) > self.labels:
            raise mistakes.too_many_labels(self.labels, self.name, len(texts))
        return texts

    def check_labels(self, rows: Rows, labels: Ragged, is_wrong: Truths, problem: Callable[[int], str]) -> None:
        """
        Raises:
            TaskError: a row [n] is wrong, as `problem` says, or train has no such label. The line is named."""
        lacks_label = np.zeros(len(labels), dtype=np.bool_)
        lacks_label[np.repeat(np.arange(len(labels)), labels.lengths)[labels.values < 0]] = True
        for row in np.flatnonzero(is_wrong | lacks_label)[:1]:
            corpus, unknown = rows.corpus, rows.columns[self.label_column][row][labels[row] < 0]
            if is_wrong[row]:
                reason = problem(row)
            else:
                label = min(map(corpus.text, unknown))
                reason = f"the label `{label}` is none of those of training: {listed(self.class_names)}"
            number, path = corpus.line(rows.indices[row])
            raise mistakes.bad_line(number, path, reason)


def _numbered(texts: Iterable[str]) -> dict[str, int]:
    return {text: number for number, text in enumerate(texts)}


def _sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
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
        files = files_of(path)
        count = sum(1 for _ in rows_of(self.name, files, columns))
        # The splits of a file take its rows, in a random order, one split after another.
        order = RandomStream(self.name, "rows", seed).order(count)
        first = self.train_size if split == "valid" else 0
        chosen = set(order[first : first + self.size(split)].tolist())
        characters = "".join(numbers)
        puzzles, solutions, ratings = list[bytes](), list[bytes](), list[int]()
        for index, (line, _, cells) in enumerate(rows_of(self.name, files, columns)):
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
                raise mistakes.bad_line(*line, reason)
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
