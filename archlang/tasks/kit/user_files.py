"""The lines of a user's own TSV or JSONL files, by split.

An error names the line. No message quotes the content of a file: a path may come from somebody else's run folder and
may lead to a private file."""

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from archlang.data.compression import ENDINGS, Stored, reading
from archlang.data.mistakes import DataError
from archlang.diagnostics.names import plural
from archlang.files.mistakes import RefusedFile
from archlang.files.readable import open_named
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_split

Words = tuple[str, ...]
Cut = Callable[[str], Words]

SPLITS = ("train", "valid", "test")
# The column that holds the split of a line.
SPLIT = "split"


def split_words(text: str) -> Words:
    """Returns the words of a text, which are separated by white space."""
    return tuple(text.split())


def one_label(text: str) -> Words:
    """Returns the text without surrounding white space as the only label, or no label if it is empty."""
    return (text.strip(),) if text.strip() else ()


CUTS: Mapping[str, Cut] = {"words": split_words, "characters": tuple}


@dataclass(frozen=True)
class Line:
    """A line of a file: its number, counted from 1, and the words of each column."""

    number: int
    cells: tuple[Words, ...]


@dataclass(frozen=True)
class UserFiles:
    """The files of a user's own that a task reads: the training file, the files of other splits, and the columns, each
    with the function that cuts its text into words."""

    task: str
    path: str
    others: Mapping[str, str]
    columns: Mapping[str, Cut]

    def paths(self) -> dict[str, str]:
        """Returns the path of each split that has a file of its own."""
        return {"train": self.path, **{split: path for split, path in self.others.items() if path}}

    def split_names(self) -> tuple[str, ...]:
        """Returns the splits of the files; every split if no file is named."""
        if not self.path:
            return SPLITS
        present = self.paths() if len(self.paths()) > 1 else self._lines_by_split() or self.paths()
        return tuple(split for split in SPLITS if split in present)

    def path_of(self, split: str) -> str:
        """Returns the path of the file that holds a split."""
        return self.paths().get(split, self.path)

    def lines(self, split: str) -> list[Line]:
        """Returns the lines of a split.

        Raises:
            TaskError: a file is missing, or a line is malformed."""
        check_split(self.task, split, self.split_names())
        if not self.path:
            raise mistakes.no_path(self.task)
        if by_split := self._lines_by_split():
            return by_split[split]
        return self._read(self.paths()[split]).get("", [])

    def _lines_by_split(self) -> dict[str, list[Line]]:
        """Returns the lines of the training file by its column `split`; empty if it has no such column."""
        by_split = self._read(self.path)
        if "" in by_split:
            return {}
        if len(self.paths()) > 1:
            raise mistakes.splits_twice(self.path)
        if "train" not in by_split:
            raise mistakes.no_training_lines(self.path)
        return by_split

    def _read(self, path: str) -> dict[str, list[Line]]:
        return _read(self.task, path, _digest(self.task, path), tuple(self.columns.items()))


def _digest(task: str, path: str) -> str:
    with _naming_file(task, path), open_named(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _read(task: str, path: str, digest: str, columns: tuple[tuple[str, Cut], ...]) -> dict[str, list[Line]]:
    """Returns every line by its split, or under "" if the file has no column `split`.

    `digest` is only a key of the cache."""
    by_split: dict[str, list[Line]] = {}
    for number, split, cells in _cells(task, path, [column for column, _ in columns]):
        words = []
        for (column, cut), cell in zip(columns, cells, strict=True):
            words.append(cut(cell) if isinstance(cell, str) else cell)
            if not words[-1]:
                raise mistakes.bad_line(path, number, f"`{column}` is empty")
        by_split.setdefault(split, []).append(Line(number, tuple(words)))
    if not by_split:
        raise mistakes.bad_line(path, 1, "expected a line of data")
    return by_split


_Cell = str | Words


def _cells(task: str, path: str, columns: Sequence[str]) -> Iterator[tuple[int, str, list[_Cell]]]:
    """Yields the number of each line, its split and its columns."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    suffix = Path(path.removesuffix(ending)).suffix
    if suffix not in (".tsv", ".jsonl"):
        raise mistakes.unknown_form(path)
    lines = lines_of(task, path, ending)
    yield from (_jsonl if suffix == ".jsonl" else _tsv)(path, lines, columns)


def _tsv(path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]) -> Iterator[tuple[int, str, list[_Cell]]]:
    first = next(lines, None)
    if first is None:
        raise mistakes.bad_line(path, 1, "the file is empty; expected a header")
    header = first[1].split("\t")
    for column in columns:
        if column not in header:
            raise mistakes.bad_line(path, 1, f"the header has no column `{column}`")
    for column in (*columns, SPLIT):
        if header.count(column) > 1:
            raise mistakes.bad_line(path, 1, f"the header has several columns `{column}`")
    indices = [header.index(column) for column in columns]
    split_index = header.index(SPLIT) if SPLIT in header else None
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise mistakes.bad_line(path, number, f"expected {plural(len(header), 'column')}, found {len(cells)}")
        split = _split(path, number, None if split_index is None else cells[split_index])
        yield number, split, [cells[index] for index in indices]


def _jsonl(
    path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[int, str, list[_Cell]]]:
    has_split: bool | None = None
    for number, line in lines:
        try:
            item = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            item = None
        if not isinstance(item, dict):
            raise mistakes.bad_line(path, number, "expected a JSON object, with each name once")
        if has_split is None:
            has_split = SPLIT in item
        if has_split != (SPLIT in item):
            raise mistakes.bad_line(path, number, f"either every line has a `{SPLIT}`, or no line has it")
        yield number, _split(path, number, item.get(SPLIT)), [_cell(path, number, item, column) for column in columns]


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Returns a JSON object.

    Raises:
        ValueError: it has a name twice."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError
    return item


def _cell(path: str, number: int, item: Mapping[str, object], column: str) -> _Cell:
    match item.get(column):
        case None:
            raise mistakes.bad_line(path, number, f"`{column}` is missing")
        case str(text):
            return text
        case bool() | int() | float() as value:
            return (json.dumps(value),)
        case list(words) if all(isinstance(word, str | int) for word in words):
            return tuple(str(word) for word in words)
    raise mistakes.bad_line(path, number, f"`{column}` is neither a text, nor a number, nor a list of words")


def _split(path: str, number: int, word: object) -> str:
    if word is None:
        return ""
    if word not in SPLITS:
        raise mistakes.bad_line(path, number, f"`{SPLIT}` is none of {', '.join(SPLITS)}")
    return str(word)


def lines_of(task: str, path: str, ending: str) -> Iterator[tuple[int, str]]:
    """Yields the lines that are not blank with their numbers."""
    # `newline="\n"`: str.splitlines would also break at U+2028 and others.
    with (
        _naming_file(task, path),
        io.TextIOWrapper(Stored(Path(path), ending).open(), encoding="utf-8-sig", newline="\n") as text,
    ):
        try:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise mistakes.bad_line(path, _undecoded_line(path, ending), "it is not UTF-8 text") from error


def _undecoded_line(path: str, ending: str) -> int:
    """The number of the first line that is not UTF-8, or of the last: a text is decoded in parts of many lines."""
    number = 1
    with Stored(Path(path), ending).open() as stream:
        for number, line in enumerate(stream, 1):  # noqa: B007 # also after the loop
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                break
    return number


@contextmanager
def _naming_file(task: str, path: str) -> Iterator[None]:
    """Raises a TaskError that names the file if it cannot be read."""
    try:
        with reading(Path(path)):
            yield
    except DataError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError | RefusedFile):
            raise mistakes.no_file(task, path) from None
        raise mistakes.unreadable_file(path) from error
