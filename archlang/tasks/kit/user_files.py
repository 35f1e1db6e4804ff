"""The rows of a user's own TSV or JSONL file, by split, and the vocabulary of those that are trained on.

What is wrong is told by the number of its line. No message quotes a file: a path may come from somebody else's run
folder, and what it leads to is nobody's business."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from archlang.data.compression import ENDINGS, Stored, telling
from archlang.data.mistakes import DataError
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.checks import check_split
from archlang.tasks.kit.lexicon import UNKNOWN, Lexicon, filled, most_frequent

Row = tuple[str, ...]
Cut = Callable[[str], Row]

SPLITS = ("train", "valid", "test")
# The column that says where a line belongs.
SPLIT = "split"


def words(text: str) -> Row:
    return tuple(text.split())


def whole(text: str) -> Row:
    return (text.strip(),) if text.strip() else ()


WAYS: Mapping[str, Cut] = {"words": words, "characters": tuple}


@dataclass(frozen=True)
class Line:
    """A line of a file: its number, and its columns as words."""

    number: int
    cells: tuple[Row, ...]


@dataclass(frozen=True)
class OwnFile:
    """What a task reads of a user's files: the file to train on, the others if there are any, and the columns, each
    with how its text becomes words."""

    task: str
    path: str
    others: Mapping[str, str]
    columns: Mapping[str, Cut]

    def named(self) -> dict[str, str]:
        """The files, by the split that is read from each."""
        return {"train": self.path, **{split: path for split, path in self.others.items() if path}}

    def split_names(self) -> tuple[str, ...]:
        """The splits there are; all, as long as no file is named."""
        if not self.path:
            return SPLITS
        if len(self.named()) > 1 or not (found := self._marked()):
            return tuple(split for split in SPLITS if split in self.named())
        return tuple(split for split in SPLITS if split in found)

    def place(self, split: str) -> str:
        """The file in which a split stands."""
        return self.named().get(split, self.path)

    def lines(self, split: str) -> list[Line]:
        """The lines of a split."""
        check_split(self.task, split, self.split_names())
        if not self.path:
            raise mistakes.no_path(self.task)
        if self._marked():
            return self._marked()[split]
        return self._read(self.named()[split]).get("", [])

    def _marked(self) -> dict[str, list[Line]]:
        """The rows of the training file by its column `split`; nothing if it has none."""
        found = self._read(self.path)
        if "" in found:
            return {}
        if len(self.named()) > 1:
            raise mistakes.splits_twice(self.path)
        if "train" not in found:
            raise mistakes.no_training_lines(self.path)
        return found

    def _read(self, path: str) -> dict[str, list[Line]]:
        return _read(self.task, path, digest_of(self.task, path), tuple(self.columns.items()))


def digest_of(task: str, path: str) -> str:
    """The sha256 of a user's file as it lies there."""
    with _telling(task, path), Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@lru_cache(maxsize=4)
def _read(task: str, path: str, digest: str, columns: tuple[tuple[str, Cut], ...]) -> dict[str, list[Line]]:
    """Every row by its split, "" where no column says one. `digest` is there for the memory of this function alone."""
    found: dict[str, list[Line]] = {}
    for number, split, cells in _cells(task, path, [column for column, _ in columns]):
        rows = []
        for (column, cut), cell in zip(columns, cells, strict=True):
            rows.append(cut(cell) if isinstance(cell, str) else cell)
            if not rows[-1]:
                raise mistakes.bad_line(path, number, f"its `{column}` is empty")
        found.setdefault(split, []).append(Line(number, tuple(rows)))
    if not found:
        raise mistakes.bad_line(path, 1, "there is no line of data")
    return found


def _cells(task: str, path: str, columns: Sequence[str]) -> Iterator[tuple[int, str, list[str | Row]]]:
    """The number of each line, its split, and its columns."""
    ending = next((ending for ending in ENDINGS if ending and path.endswith(ending)), "")
    kind = Path(path.removesuffix(ending)).suffix
    if kind not in (".tsv", ".jsonl"):
        raise mistakes.unknown_form(path)
    lines = _lines(task, path, ending)
    yield from (_objects if kind == ".jsonl" else _table)(path, lines, columns)


def _table(
    path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[int, str, list[str | Row]]]:
    header = next(lines, (1, ""))[1].split("\t")
    for column in columns:
        if column not in header:
            raise mistakes.bad_line(path, 1, f"it names no column `{column}`")
    places = [header.index(column) for column in columns]
    where = header.index(SPLIT) if SPLIT in header else None
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise mistakes.bad_line(
                path, number, f"it has {len(cells)} columns, and the first line names {len(header)}"
            )
        yield number, _split(path, number, None if where is None else cells[where]), [cells[place] for place in places]


def _objects(
    path: str, lines: Iterator[tuple[int, str]], columns: Sequence[str]
) -> Iterator[tuple[int, str, list[str | Row]]]:
    marked: bool | None = None
    for number, line in lines:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise mistakes.bad_line(path, number, "it is no JSON object")
        if marked is None:
            marked = SPLIT in found
        if marked != (SPLIT in found):
            raise mistakes.bad_line(path, number, f"either every line says its `{SPLIT}`, or none does")
        yield number, _split(path, number, found.get(SPLIT)), [_cell(path, number, found, one) for one in columns]


def _cell(path: str, number: int, found: Mapping[str, object], column: str) -> str | Row:
    match found.get(column):
        case None:
            raise mistakes.bad_line(path, number, f"it has no `{column}`")
        case str(text):
            return text
        case bool() | int() | float() as value:
            return (json.dumps(value),)
        case list(items) if all(isinstance(item, str | int) for item in items):
            return tuple(str(item) for item in items)
    raise mistakes.bad_line(path, number, f"its `{column}` is neither a text, nor a number, nor a list of words")


def _split(path: str, number: int, word: object) -> str:
    if word is None:
        return ""
    if word not in SPLITS:
        raise mistakes.bad_line(path, number, f"its `{SPLIT}` is none of {', '.join(SPLITS)}")
    return str(word)


def _lines(task: str, path: str, ending: str) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, without those that are blank."""
    # Not every sign that ends a line of text ends one of a file.
    with (
        _telling(task, path),
        io.TextIOWrapper(Stored(Path(path), ending).open(), encoding="utf-8-sig", newline="\n") as text,
    ):
        try:
            for number, line in enumerate(text, 1):
                if line.strip():
                    yield number, line.rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise mistakes.not_text(path) from error


@contextmanager
def _telling(task: str, path: str) -> Iterator[None]:
    """Says which file it is that cannot be read."""
    # A device or a pipe would be read for ever.
    if not Path(path).is_file():
        raise mistakes.no_file(task, path)
    try:
        with telling(Path(path)):
            yield
    except DataError as error:
        raise mistakes.unreadable_file(path) from error


# Words and labels by number


def lexicon(own: OwnFile, most: int, columns: Sequence[int], after: Sequence[str] = ()) -> Lexicon:
    """The most frequent words of these columns of the training split, `<unk>`, what stands for nothing, and `after`."""
    texts = most_frequent((line.cells[column] for line in own.lines("train") for column in columns), most)
    known = (*filled(texts, most), UNKNOWN)
    return Lexicon((*known, *after), unknown=most)


def labels(own: OwnFile, column: int, most: int) -> dict[str, int]:
    """The labels of training by number: whole numbers in their order, else words in the order of their letters."""
    found = {label for line in own.lines("train") for label in line.cells[column]}
    ordered = sorted(found, key=int) if all(label.isdecimal() for label in found) else sorted(found)
    if len(ordered) > most:
        raise mistakes.too_many_labels(own.task, most, len(ordered))
    return {label: number for number, label in enumerate(ordered)}


def numbered(own: OwnFile, split: str, line: Line, column: int, known: Mapping[str, int]) -> list[int]:
    """The labels of a line as numbers; one that training does not have cannot be told by a model."""
    try:
        return [known[label] for label in line.cells[column]]
    except KeyError:
        raise mistakes.bad_line(own.place(split), line.number, "no line of train has this label") from None
