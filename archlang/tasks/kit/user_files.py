"""The texts of a user's own files: CSV, TSV, JSONL, and texts of one column, read once to numbers of words.

An error names the line. No message quotes the content of a file: a path may come from somebody else's run folder and
may lead to a private file."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from archlang.data.mistakes import DataError
from archlang.data.stored import ENDINGS, Stored, digest_of, reading
from archlang.disk.mistakes import RefusedFile
from archlang.errors.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.cache import entry
from archlang.tasks.kit.lexicon import Cut, Numbers, most_frequent
from archlang.tasks.kit.ragged import Integers, Ragged, Truths
from archlang.tasks.kit.split import Part, Parts

Words = tuple[str, ...]
Cell = str | Words
Row = tuple[int, object, list[Cell]]

SPLITS = ("train", "valid", "test")
# The column that holds the split of a row, and the number of the split where there is no such column.
SPLIT, NO_SPLIT = "split", len(SPLITS)
FORMS = (".csv", ".tsv", ".jsonl", ".txt")
_VERSION = 1
# The rows that are read at a time, of at most so many characters; and the words of the rows that are encoded at a time.
_ROWS, _WORDS = 1 << 8, 1 << 21


def one_label(text: str) -> Words:
    """Returns the text without surrounding white space as the only label, or no label if it is empty."""
    return (text.strip(),) if text.strip() else ()


@dataclass(frozen=True)
class Source:
    """A file, and what is read of it: `columns`, each with the function that cuts its text into words; the column with
    the index `group` as one text; and, if `has_places`, the place of each text. Without a `header`, the columns are the
    first ones of the file. `task` is named in errors."""

    task: str
    path: str
    columns: tuple[tuple[str, Cut], ...]
    header: bool = True
    group: int | None = None
    has_places: bool = False

    def rows(self) -> Iterator[Row]:
        """Yields the rows of the file, as `rows_of` does."""
        return rows_of(self.task, self.path, [column for column, _ in self.columns], self.header)

    def key(self) -> list[object]:
        """Returns what the content of its corpus depends on, as JSON: not on the path.

        Raises:
            TaskError: the file is missing or cannot be read."""
        with _naming_file(self.task, self.path):
            digest = str(digest_of(Stored(Path(self.path))))
        columns = [[column, cut.__name__] for column, cut in self.columns]
        return [_VERSION, digest, _form(self.path), columns, self.header, self.group, self.has_places]

    def read(self) -> Corpus:
        """Returns the corpus of the file, from the cache if the file has been read before.

        Raises:
            TaskError: the file is missing, or a row is malformed."""
        check_forms(self.task, [self.path], len(self.columns))
        return _read(self, json.dumps(self.key()))


@lru_cache(maxsize=4)
def _read(source: Source, key: str) -> Corpus:
    parts: Mapping[str, Any] = entry("texts", key, lambda: _pieces(source)).parts  # Any: the type depends on the name
    columns = tuple(parts[str(index)] for index in range(len(source.columns)))
    return Corpus(source, columns, parts["splits"], parts.get("groups"), parts.get("places"), parts["words"])


@dataclass(frozen=True, eq=False)
class Corpus:
    """The N rows of a file. A column holds the numbers of the words of each row; `words` are the bytes of each word.

    `splits` [N] are indices of `SPLITS`, or `NO_SPLIT`. `groups` [N] are the numbers of the texts of the column
    `group`, and `places` [N] numbers from 0 to 1 that depend on the first column alone, so that equal texts are in one
    split; both are None if the source asks for none."""

    source: Source
    columns: tuple[Ragged, ...]
    splits: Integers
    groups: Any  # an array, or None: so is `places`
    places: Any
    words: Ragged

    def line(self, row: int) -> int:
        """Returns the number of the line of a row, counted from 1."""
        return next(islice(self.source.rows(), row, None))[0]

    def texts(self) -> Iterator[str]:
        """Yields the text of each word, by its number."""
        content, ends = self.words.values.data, self.words.offsets
        for first in range(0, len(self.words), _WORDS):
            bounds = ends[first : first + _WORDS + 1].tolist()
            for start, end in pairwise(bounds):
                yield str(content[start:end], "utf-8", "surrogatepass")

    def text(self, word: int | np.integer) -> str:
        """Returns the text of a word."""
        return self.words[int(word)].tobytes().decode(errors="surrogatepass")

    def pieces(self, chosen: Truths) -> Iterator[Rows]:
        """Yields the rows where `chosen` [N] is true, some at a time."""
        first = self.columns[0].offsets
        bounds = np.unique([0, *np.searchsorted(first, np.arange(_WORDS, first[-1], _WORDS)), len(first) - 1])
        for start, end in pairwise(bounds):
            marks = chosen[start:end]
            parts = [column.part(start, end) for column in self.columns]
            columns = parts if marks.all() else [part.select(marks) for part in parts]
            yield Rows(self, start + np.flatnonzero(marks), tuple(columns))

    def counts(self, columns: Iterable[int], chosen: Truths) -> Integers:
        """Returns how often each word is in columns of the rows where `chosen` [N] is true."""
        counts = np.zeros(len(self.words), dtype=np.int64)
        for rows in self.pieces(chosen):
            for column in columns:
                counts += np.bincount(rows.columns[column].values, minlength=len(counts))
        return counts

    def most_frequent(self, counts: Integers, most: int) -> tuple[str, ...]:
        """Returns at most `most` of the words with the largest `counts`."""
        words = np.flatnonzero(counts)
        if len(words) > most:
            words = words[counts[words] >= np.partition(counts[words], -most)[-most]]
        return most_frequent({self.text(word): int(counts[word]) for word in words}, most)

    def numbers(self, ids: Mapping[str, int], other: int = -1, dtype: npt.DTypeLike = np.int64) -> np.ndarray:
        """Returns for each word its number in `ids`; `other` if it has none."""
        return np.fromiter((ids.get(text, other) for text in self.texts()), dtype, len(self.words))


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a corpus: their indices [n], and their columns."""

    corpus: Corpus
    indices: Integers
    columns: tuple[Ragged, ...]


def _pieces(source: Source) -> Iterator[Parts]:
    """Yields the parts of a corpus, some rows at a time, and then the words.

    Raises:
        TaskError: the file is missing, or a row is malformed."""
    numbers = Numbers()
    for some in _some(source.rows()):
        lines, splits, cells = zip(*some, strict=True)
        for line, split in zip(lines, splits, strict=True):
            if split is not None and split not in SPLITS:
                raise mistakes.bad_line(line, source.path, f"`{SPLIT}` is none of {', '.join(SPLITS)}")
        numbers_of_splits = [NO_SPLIT if split is None else SPLITS.index(split) for split in splits]
        piece: dict[str, Part] = {"splits": np.array(numbers_of_splits, np.uint8)}
        for index, (column, cut) in enumerate(source.columns):
            texts = [cut(cell) if isinstance(cell, str) else cell for cell in (row[index] for row in cells)]
            for line, words in zip(lines, texts, strict=True):
                if not words:
                    raise mistakes.bad_line(line, source.path, f"`{column}` is empty")
            piece[str(index)] = numbers.encode(texts)
            if index == source.group:
                piece["groups"] = np.array([numbers[" ".join(words)] for words in texts], np.int32)
            if not index and source.has_places:
                piece["places"] = np.array([_place(words) for words in texts])
        yield piece
    if not numbers:
        raise mistakes.bad_line(1, source.path, "expected a line of data")
    spellings = iter(numbers)
    while spelled := list(islice(spellings, _WORDS)):
        yield {"words": Ragged.of_bytes(word.encode(errors="surrogatepass") for word in spelled)}


def _some(rows: Iterator[Row]) -> Iterator[list[Row]]:
    some, size = list[Row](), 0
    for row in rows:
        some.append(row)
        size += sum(map(len, row[2]))
        if len(some) == _ROWS or size >= _WORDS:
            yield some
            some, size = [], 0
    if some:
        yield some


def _place(words: Words) -> float:
    digest = hashlib.sha256("\0".join(words).encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def check_forms(task: str, paths: Sequence[str], columns: int) -> None:
    """Raises TaskError if the name of a file says that it cannot be read with so many columns."""
    for path in paths:
        if (form := _form(path)[0]) not in FORMS or (form == ".txt" and columns > 1):
            raise mistakes.unknown_form(path, task)


def _form(path: str) -> tuple[str, str]:
    """Returns the suffix of a file, and the ending of its compression."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    return Path(path.removesuffix(ending)).suffix, ending


def rows_of(task: str, path: str, columns: Sequence[str], header: bool = True) -> Iterator[Row]:
    """Yields the number of each row, its cell in the column `split`, if there is one, and its cells in `columns`.

    Raises:
        TaskError: the file is missing or malformed."""
    check_forms(task, [path], len(columns))
    form, ending = _form(path)
    if form == ".csv":
        records = _csv(task, path, ending)
    else:
        lines = ((number, line.rstrip("\r\n")) for number, line in _lines(task, path, ending) if line.strip())
        if form == ".jsonl":
            yield from _jsonl(path, lines, columns)
            return
        records = ((number, line.split("\t") if form == ".tsv" else [line]) for number, line in lines)
    yield from _table(task, path, records, columns, header and form != ".txt")


def _csv(task: str, path: str, ending: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(line for _, line in _lines(task, path, ending))
    number = 1
    try:
        for cells in reader:
            if cells:
                yield number, cells
            number = reader.line_num + 1
    except csv.Error:
        raise mistakes.bad_line(number, path, "it is not a row of CSV") from None


def _table(
    task: str, path: str, records: Iterator[tuple[int, list[str]]], columns: Sequence[str], header: bool
) -> Iterator[Row]:
    names, split_index, width = list(columns), None, 0
    if header:
        first = next(records, None)
        if first is None:
            raise mistakes.bad_line(1, path, "the file is empty; expected a header")
        names, width = [name.strip() for name in first[1]], len(first[1])
        for column in columns:
            if column not in names:
                raise mistakes.no_column(first[0], path, column, task)
        for column in (*columns, SPLIT):
            if names.count(column) > 1:
                raise mistakes.bad_line(first[0], path, f"the header has several columns `{column}`")
        split_index = names.index(SPLIT) if SPLIT in names else None
    indices = [names.index(column) for column in columns]
    for number, cells in records:
        width = width or max(len(cells), len(columns))
        if len(cells) != width:
            raise mistakes.bad_line(number, path, f"expected {plural(width, 'column')}, found {len(cells)}")
        yield number, None if split_index is None else cells[split_index], [cells[index] for index in indices]


def _jsonl(path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]) -> Iterator[Row]:
    has_split: bool | None = None
    for number, line in lines:
        try:
            item = json.loads(line, object_pairs_hook=_object, parse_constant=int)  # NaN raises ValueError
        except (ValueError, RecursionError):
            item = None
        if not isinstance(item, dict):
            raise mistakes.bad_line(number, path, "expected a JSON object, with each name once")
        if has_split is None:
            has_split = SPLIT in item
        if has_split != (SPLIT in item):
            raise mistakes.bad_line(number, path, f"either every line has a `{SPLIT}`, or no line has it")
        yield number, item.get(SPLIT), [_cell(path, number, item, column) for column in columns]


def _object(pairs: Sequence[tuple[str, object]]) -> dict[str, object]:
    """Returns a JSON object.

    Raises:
        ValueError: it has a name twice."""
    item = dict(pairs)
    if len(item) < len(pairs):
        raise ValueError
    return item


def _cell(path: str, number: int, item: Mapping[str, object], column: str) -> Cell:
    match item.get(column):
        case None:
            raise mistakes.bad_line(number, path, f"`{column}` is missing")
        case str(text):
            return text
        case bool() | int() | float() as value:
            return (json.dumps(value),)
        case list(words) if all(isinstance(word, str | int) for word in words):
            return tuple(str(word) for word in words)
    raise mistakes.bad_line(number, path, f"`{column}` is neither a text, nor a number, nor a list of words")


def _lines(task: str, path: str, ending: str) -> Iterator[tuple[int, str]]:
    """Yields the lines with their numbers."""
    with _naming_file(task, path), Stored(Path(path), ending).open() as stream:
        for number, line in enumerate(stream, 1):
            try:
                # Only line feeds end lines; str.splitlines would also break at U+2028 and others.
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise mistakes.bad_line(number, path, "it is not UTF-8 text") from error


@contextmanager
def _naming_file(task: str, path: str) -> Iterator[None]:
    """Raises a TaskError that names the file if it cannot be read."""
    try:
        with reading(Path(path)):
            yield
    except DataError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError | RefusedFile):
            raise mistakes.no_file(path, task) from None
        raise mistakes.unreadable_file(path) from error
