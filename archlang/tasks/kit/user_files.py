"""The rows of a user's own files, by split: CSV, TSV, JSONL, and texts of one column.

An error names the line. No message quotes the content of a file: a path may come from somebody else's run folder and
may lead to a private file."""

import csv
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from archlang.data.mistakes import DataError
from archlang.data.stored import ENDINGS, Stored, reading
from archlang.disk.mistakes import RefusedFile
from archlang.disk.readable import open_named
from archlang.errors.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import Cut

Words = tuple[str, ...]
Cell = str | Words

SPLITS = ("train", "valid", "test")
# The column that holds the split of a row.
SPLIT = "split"
FORMS = (".csv", ".tsv", ".jsonl", ".txt")


def one_label(text: str) -> Words:
    """Returns the text without surrounding white space as the only label, or no label if it is empty."""
    return (text.strip(),) if text.strip() else ()


@dataclass(frozen=True)
class Line:
    """A row of a file: the number of its line, counted from 1, and the words of each column."""

    number: int
    cells: tuple[Words, ...]

    @cached_property
    def place(self) -> float:
        """A number from 0 to 1 that depends on the first column alone, so that equal texts are in one split."""
        digest = hashlib.sha256("\0".join(self.cells[0]).encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") / 2.0**64


def read_lines(task: str, path: str, columns: Mapping[str, Cut], header: bool) -> dict[str, list[Line]]:
    """Returns every row by its split, or under "" if the file has no column `split`. `columns` are those to read, each
    with the function that cuts its text into words. Without a `header`, they are the first ones of the file.

    Raises:
        TaskError: the file is missing, or a row is malformed."""
    check_forms(task, [path], len(columns))
    with _naming_file(task, path), open_named(path) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return _read_lines(task, path, digest, tuple(columns.items()), header)


@lru_cache(maxsize=4)
def _read_lines(
    task: str, path: str, digest: str, columns: tuple[tuple[str, Cut], ...], header: bool
) -> dict[str, list[Line]]:
    """`digest` is only a key of the cache."""
    by_split: dict[str, list[Line]] = {}
    for number, split, cells in rows_of(task, path, [column for column, _ in columns], header):
        if split not in (None, *SPLITS):
            raise mistakes.bad_line(number, path, f"`{SPLIT}` is none of {', '.join(SPLITS)}")
        words = []
        for (column, cut), cell in zip(columns, cells, strict=True):
            words.append(cut(cell) if isinstance(cell, str) else cell)
            if not words[-1]:
                raise mistakes.bad_line(number, path, f"`{column}` is empty")
        by_split.setdefault(str(split or ""), []).append(Line(number, tuple(words)))
    if not by_split:
        raise mistakes.bad_line(1, path, "expected a line of data")
    return by_split


def check_forms(task: str, paths: Sequence[str], columns: int) -> None:
    """Raises TaskError if the name of a file says that it cannot be read with so many columns."""
    for path in paths:
        if (form := _form(path)[0]) not in FORMS or (form == ".txt" and columns > 1):
            raise mistakes.unknown_form(path, task)


def _form(path: str) -> tuple[str, str]:
    """Returns the suffix of a file, and the ending of its compression."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    return Path(path.removesuffix(ending)).suffix, ending


def rows_of(
    task: str, path: str, columns: Sequence[str], header: bool = True
) -> Iterator[tuple[int, object, list[Cell]]]:
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
) -> Iterator[tuple[int, object, list[Cell]]]:
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


def _jsonl(
    path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[int, object, list[Cell]]]:
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
