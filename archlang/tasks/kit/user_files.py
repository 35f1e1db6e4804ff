"""The texts of a user's own files: CSV, TSV, JSONL, Parquet, Arrow, and texts of one column, read once to numbers of
words.

An error names the line. No message quotes the content of a file: a path may come from somebody else's run folder and
may lead to a private file."""

from __future__ import annotations

import csv
import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from archlang.disk.readable import ReadableFolders, open_named
from archlang.errors.machine import needs_extra
from archlang.errors.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.cache import entry
from archlang.tasks.kit.lexicon import Cut, Numbers, TokenCut, most_frequent
from archlang.tasks.kit.split import Integers, Part, Parts, Ragged, Truths

Words = tuple[str, ...]
Cell = str | Words
# The number of a line, and its file.
Line = tuple[int, str]
Row = tuple[Line, object, list[Cell]]
Records = Iterator[tuple[int, Mapping[str, object]]]

SPLITS = ("train", "valid", "test")
# The column that holds the split of a row, and the number of the split where there is no such column.
SPLIT, NO_SPLIT = "split", len(SPLITS)
# Those of pyarrow are binary, and compressed inside.
_ARROW_FILE, _ARROW = b"ARROW1", (".parquet", ".arrow", ".feather")
FORMS = (".csv", ".tsv", ".jsonl", ".txt", *_ARROW)
_VERSION = 3
# The rows that are read at a time, of at most so many characters; and the words of the rows that are encoded at a time.
_ROWS, _WORDS = 1 << 8, 1 << 21
# Also the characters of a cell of CSV, and the bytes of a Parquet file that are read at a time.
_LARGEST_CELL, _BUFFER = 1 << 30, 1 << 20
_DOCUMENT = 1 << 20


def one_label(text: str) -> Words:
    """Returns the text without surrounding white space as the only label, or no label if it is empty."""
    return (text.strip(),) if text.strip() else ()


@dataclass(frozen=True)
class UserFiles:
    """Files of one form, and what is read of them: `columns`, each with the function that cuts its text into words; the
    column with the index `group` as one text; and, if `has_places`, the place of each text. Without a `header`, the
    columns are the first ones of a file. Of `documents`, every file that is no table is one. `task` is named in
    errors."""

    task: str
    files: tuple[str, ...]
    columns: tuple[tuple[str, Cut], ...]
    header: bool = True
    group: int | None = None
    has_places: bool = False
    documents: bool = False

    @property
    def is_one_text(self) -> bool:
        """Whether the files are one text, without a table."""
        return self.documents and [_form(path, True)[0] for path in self.files] == [".txt"]

    def rows(self) -> Iterator[Row]:
        """Yields the rows of the files, as `rows_of` does."""
        return rows_of(self.task, self.files, [column for column, _ in self.columns], self.header, self.documents)

    def key(self) -> list[object]:
        """Returns what the content of its corpus depends on, as JSON: not on the paths.

        Raises:
            TaskError: a file is missing or cannot be read."""
        files = []
        for path in self.files:
            with naming_file(self.task, path):
                files.append([str(digest_of(Stored(Path(path)))), *_form(path, self.documents)])
        columns = [[column, cut.name if isinstance(cut, TokenCut) else cut.__name__] for column, cut in self.columns]
        return [_VERSION, files, columns, self.header, self.group, self.has_places, self.documents]

    def read(self) -> Corpus:
        """Returns the corpus of the files, from the cache if they have been read before.

        Raises:
            TaskError: a file is missing, or a row is malformed."""
        return _read(self, json.dumps(self.key()))


@lru_cache(maxsize=4)
def _read(source: UserFiles, key: str) -> Corpus:
    parts: Mapping[str, Any] = entry("texts", key, lambda: _pieces(source)).parts  # Any: the type depends on the name
    columns = tuple(parts[str(index)] for index in range(len(source.columns)))
    groups, places, sizes = (parts.get(name) for name in ("groups", "places", "bytes"))
    return Corpus(source, columns, parts["splits"], groups, places, sizes, parts["words"])


@dataclass(frozen=True, eq=False)
class Corpus:
    """The N rows of files. A column holds the numbers of the words of each row; `words` are the bytes of each word.

    `splits` [N] are indices of `SPLITS`, or `NO_SPLIT`. `groups` [N] are the numbers of the texts of the column
    `group`, and `places` [N] numbers from 0 to 1 that depend on the first column alone (of documents, on their text and
    not on how it is cut), so that equal texts are in one split. `sizes` [N] are the bytes of documents. Each is None if
    the source asks for none."""

    source: UserFiles
    columns: tuple[Ragged, ...]
    splits: Integers
    groups: Any  # an array, or None: so are the next two
    places: Any
    sizes: Any
    words: Ragged

    def line(self, row: int) -> Line:
        """Returns the number of the line of a row, counted from 1, and its file."""
        return next(islice(self.source.rows(), row, None))[0]

    def marked(self, split: str) -> Truths:
        """Marks the rows whose column `split` names a split; with an empty name, those without such a column."""
        return np.asarray(self.splits == (SPLITS.index(split) if split else NO_SPLIT))

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


def _pieces(source: UserFiles) -> Iterator[Parts]:
    """Yields the parts of a corpus, some rows at a time, and then the words."""
    # Texts that are cut into tokens have the numbers of these.
    numbers = Numbers.of(text for _, cut in source.columns for text in getattr(cut, "texts", ()))
    splits: Sequence[object] = ()
    for some in some_rows(source.rows()):
        lines, splits, cells = zip(*some, strict=True)
        for line, split in zip(lines, splits, strict=True):
            if split is not None and split not in SPLITS:
                raise mistakes.bad_line(*line, f"`{SPLIT}` is none of {', '.join(SPLITS)}")
        numbers_of_splits = [NO_SPLIT if split is None else SPLITS.index(split) for split in splits]
        piece: dict[str, Part] = {"splits": np.array(numbers_of_splits, np.uint8)}
        for index, (column, cut) in enumerate(source.columns):
            texts = [cut(cell) if isinstance(cell, str) else cell for cell in (row[index] for row in cells)]
            for line, words in zip(lines, texts, strict=True):
                if not len(words):
                    raise mistakes.bad_line(*line, f"`{column}` is empty")
            piece[str(index)] = numbers.encode(texts)
            if index == source.group:
                piece["groups"] = np.array([numbers[" ".join(words)] for words in texts], np.int32)
            if not index and source.has_places:
                # Documents are drawn by their text: a tokenizer is measured on the same ones as any other.
                piece["places"] = np.array(
                    [_place(row[0]) for row in cells] if source.documents else [*map(_place, texts)]
                )
        if source.documents:
            piece["bytes"] = np.array([len(str(text).encode(errors="surrogatepass")) for (text,) in cells])
        yield piece
    if not splits:
        expected = "a text: each document is empty" if source.documents else "a line of data"
        raise mistakes.bad_line(1, source.files[0], f"expected {expected}")
    spellings = iter(numbers)
    while spelled := list(islice(spellings, _WORDS)):
        yield {"words": Ragged.of_bytes(word.encode(errors="surrogatepass") for word in spelled)}


def some_rows(rows: Iterator[Row]) -> Iterator[list[Row]]:
    """Yields rows in their order, some at a time."""
    some, size = list[Row](), 0
    for row in rows:
        some.append(row)
        size += sum(map(len, row[2]))
        if len(some) == _ROWS or size >= _WORDS:
            yield some
            some, size = [], 0
    if some:
        yield some


def _place(cell: Cell) -> float:
    text = cell if isinstance(cell, str) else "\0".join(cell)
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2.0**64


def files_of(path: str) -> tuple[str, ...]:
    """Returns the files that a path names, sorted: itself, those of a folder, or those that match a pattern. If there
    are none, returns the path, whose reading then fails.

    Raises:
        TaskError: one of them is a link that leads out of the folder, or the folder has no files or several data
            sets."""
    if os.path.isfile(path):
        return (path,)
    if os.path.isfile(os.path.join(path, "dataset_dict.json")):
        raise mistakes.several_datasets(path)
    # The other files of a folder that `save_to_disk` of the package datasets writes describe the data.
    is_saved = os.path.isfile(os.path.join(path, "dataset_info.json"))
    folder, pattern = path, os.path.join(glob.escape(path), "*.arrow" if is_saved else "*")
    if not os.path.isdir(path):
        folder = next(str(parent) for parent in Path(path).parents if not glob.has_magic(str(parent)))
        pattern = path
    files = sorted(filter(os.path.isfile, glob.iglob(pattern, recursive=True)))
    inside = ReadableFolders((os.path.realpath(folder),))
    for file in files:
        if inside.find(file) is None:
            raise mistakes.link_outside(file, folder)
    if not files and os.path.isdir(path):
        raise mistakes.empty_folder(path)
    return tuple(files) or (path,)


def check_forms(task: str, paths: Sequence[str], columns: int, documents: bool = False) -> None:
    """Raises TaskError if the names of files, those of one path, say that they cannot be read with so many columns."""
    forms = {path: _form(path, documents) for path in paths}
    for path, (form, ending) in forms.items():
        is_binary = form in _ARROW and ending
        # A folder may not be there yet.
        if (form or os.path.exists(path)) and (form not in FORMS or is_binary or (form == ".txt" and columns > 1)):
            raise mistakes.unknown_form(path, task)
    if len(different := sorted({form for form, _ in forms.values()})) > 1:
        # A file of the last form: for documents, a text rather than a table.
        suffix = Path(next(path for path, (form, _) in forms.items() if form == different[-1])).suffix
        names = " and ".join("text" if documents and form == ".txt" else form for form in different)
        raise mistakes.different_forms(os.path.dirname(paths[0]), names, suffix)


def _form(path: str, documents: bool = False) -> tuple[str, str]:
    """Returns the suffix of a file, and the ending of its compression. Of `documents`, all but tables are `.txt`."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    form = Path(path.removesuffix(ending)).suffix
    return ".txt" if documents and form not in FORMS else form, ending


def rows_of(
    task: str, files: Sequence[str], columns: Sequence[str], header: bool = True, documents: bool = False
) -> Iterator[Row]:
    """Yields the line of each row, its cell in the column `split`, if there is one, and its cells in `columns`.

    Raises:
        TaskError: a file is missing or malformed."""
    check_forms(task, files, len(columns), documents)
    has_split: bool | None = None
    for path in files:
        for number, record in _records(task, path, columns, header, documents):
            if has_split is None:
                has_split = SPLIT in record
            if has_split != (SPLIT in record):
                raise mistakes.bad_line(number, path, f"either every line has a `{SPLIT}`, or no line has it")
            cells = [_cell(task, path, number, record, column) for column in columns]
            if documents:
                cells = [cell if isinstance(cell, str) else " ".join(cell) for cell in cells]
            # Unlike other texts, a document may be empty.
            if not documents or any(cells):
                # A null is no split of its own.
                yield (number, path), (record[SPLIT] or "") if has_split else None, cells


def _records(task: str, path: str, columns: Sequence[str], header: bool, documents: bool) -> Records:
    """Yields the number of each row of a file, and its cells by column."""
    form, ending = _form(path, documents)
    if form in _ARROW:
        return _arrow(task, path, columns)
    if form == ".csv":
        return _table(task, path, _csv(task, path, ending), columns, header)
    if documents and form == ".txt":
        return _documents(columns[0], _numbered_lines(task, path, ending))
    lines = ((number, line.rstrip("\r\n")) for number, line in _numbered_lines(task, path, ending) if line.strip())
    if form == ".jsonl":
        return _jsonl(path, lines)
    rows = ((number, line.split("\t") if form == ".tsv" else [line]) for number, line in lines)
    return _table(task, path, rows, columns, header and form != ".txt")


def _documents(column: str, lines: Iterable[tuple[int, str]]) -> Records:
    some, size, first = list[str](), 0, 1
    for number, line in lines:
        some.append(line)
        size += len(line)
        if size >= _DOCUMENT:
            yield first, {column: "".join(some)}
            some, size, first = [], 0, number + 1
    yield first, {column: "".join(some)}


def _arrow(task: str, path: str, columns: Sequence[str]) -> Records:
    with needs_extra("parquet"):
        import pyarrow
        from pyarrow import ipc, parquet
    number = 0
    with naming_file(task, path, lambda: number), open_named(path) as file:
        try:
            if _form(path)[0] == ".parquet":
                source = parquet.ParquetFile(file, buffer_size=_BUFFER)
                names = source.schema_arrow.names
                batches = source.iter_batches(_ROWS, columns=[*columns, SPLIT], use_threads=False)
            elif file.peek(len(_ARROW_FILE)).startswith(_ARROW_FILE):
                source = ipc.open_file(file)
                names, batches = source.schema.names, map(source.get_batch, range(source.num_record_batches))
            else:
                batches = ipc.open_stream(file)
                names = batches.schema.names
            _check_columns(task, path, 1, names, columns)
            wanted = [column for column in dict.fromkeys((*columns, SPLIT)) if column in names]
            for batch in batches:
                batch.validate(full=True)  # as pyarrow reads outside of a damaged one
                for first in range(0, batch.num_rows, _ROWS):
                    for record in batch.select(wanted).slice(first, _ROWS).to_pylist():
                        number += 1
                        yield number, record
        except (pyarrow.ArrowException, UnicodeDecodeError):
            raise mistakes.unreadable_file(path, number) from None


def _csv(task: str, path: str, ending: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(line for _, line in _numbered_lines(task, path, ending))
    cells: list[str] | None = []
    number = 1
    while cells is not None:
        if cells:
            yield number, cells
        number = reader.line_num + 1
        # The limit is that of the process, and a stream keeps this generator.
        previous_limit = csv.field_size_limit(_LARGEST_CELL)
        try:
            cells = next(reader, None)
        except csv.Error:
            raise mistakes.bad_line(number, path, "it is not a row of CSV") from None
        finally:
            csv.field_size_limit(previous_limit)


def _table(
    task: str, path: str, rows: Iterator[tuple[int, list[str]]], columns: Sequence[str], header: bool
) -> Records:
    names = list(columns)
    if header:
        first = next(rows, None)
        if first is None:
            raise mistakes.bad_line(1, path, "the file is empty; expected a header")
        names = [name.strip() for name in first[1]]
        _check_columns(task, path, first[0], names, columns)
    width = len(names) if header else 0
    for number, cells in rows:
        width = width or max(len(cells), len(columns))
        if len(cells) != width:
            raise mistakes.bad_line(number, path, f"expected {plural(width, 'column')}, found {len(cells)}")
        yield number, dict(zip(names, cells, strict=header))


def _check_columns(task: str, path: str, number: int, names: Sequence[str], columns: Sequence[str]) -> None:
    for column in columns:
        if column not in names:
            raise mistakes.no_column(task, path, number, column, names)
    for column in (*columns, SPLIT):
        if names.count(column) > 1:
            raise mistakes.bad_line(number, path, f"the header has several columns `{column}`")


def _jsonl(path: str, lines: Iterator[tuple[int, str]]) -> Records:
    for number, line in lines:
        try:
            record = json.loads(line, parse_constant=int)  # NaN raises ValueError
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            raise mistakes.bad_line(number, path, "expected a JSON object")
        yield number, record


def _cell(task: str, path: str, number: int, record: Mapping[str, object], column: str) -> Cell:
    match record.get(column):
        case None if column not in record:
            raise mistakes.no_column(task, path, number, column, record)
        case None:
            return ""
        case str(text):
            return text
        case bool() | int() | float() as value:
            return (json.dumps(value),)
        case list(words) if all(isinstance(word, str | int) for word in words):
            return tuple(str(word) for word in words)
    raise mistakes.bad_line(number, path, f"`{column}` is neither a text, nor a number, nor a list of words")


def _numbered_lines(task: str, path: str, ending: str) -> Iterator[tuple[int, str]]:
    number = 0
    with naming_file(task, path, lambda: number), Stored(Path(path), ending).open() as stream:
        for number, line in enumerate(stream, 1):
            try:
                # Only line feeds end lines; str.splitlines would also break at U+2028 and others.
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise mistakes.bad_line(number, path, "it is not UTF-8 text") from error


@contextmanager
def naming_file(task: str, path: str, line: Callable[[], int] = int) -> Iterator[None]:
    """Raises a TaskError that names the file, and the last line before the damage, if it cannot be read."""
    try:
        with reading(Path(path)):
            yield
    except DataError as error:
        if isinstance(error.__cause__, FileNotFoundError | NotADirectoryError | IsADirectoryError | RefusedFile):
            raise (mistakes.no_match if glob.has_magic(path) else mistakes.no_file)(path, task) from None
        raise mistakes.unreadable_file(path, line()) from error
