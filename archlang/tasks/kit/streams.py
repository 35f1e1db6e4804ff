"""Documents that are read while a model trains and are never stored: of a user's own files, or of a data set of the
Hugging Face Hub, by the package `datasets`.

A stream is read in parts, and each part is a split like any other: its items are shuffled, batched and sent to a device
as those of stored data. Where a part begins is all that resuming needs, so a run equals one that was never stopped."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

from archlang.disk.cache_folder import own_cache
from archlang.disk.readable import open_named
from archlang.errors import ArchlangError
from archlang.errors.machine import is_out_of_memory, needs_extra
from archlang.errors.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.user_files import SPLITS, check_forms, files_of, naming_file, rows_of

Place = Any  # Any: numbers and texts, as JSON; None is the beginning
# Some documents, and the place after them.
Documents = Iterator[tuple[list[str], Place]]

# A program's `hf://OWNER/NAME/SUBSET@COMMIT` is a path below its folder, as every path is.
_IS_HUB = re.compile(r"[\\/]hf:[\\/]+")
_WORD = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_HUB = re.compile(f"({_WORD}/{_WORD})(?:/({_WORD}))?@([0-9a-f]{{40}})")
# From the Hub, one row is read at a time for so many characters of a part, and no more rows than these.
_CHARACTERS, _ROWS = 1 << 12, 1 << 8
_MOST_CHARACTERS = 300
# The bytes at the end of a file that stand for its content: a stream is not read twice.
_TAIL = 1 << 16


@dataclass(frozen=True, eq=False, kw_only=True)
class StreamPart(Split):
    """Items of a `stream` from `place` on. `after` is the place of the next part."""

    stream: Stream
    place: Place
    after: Place


class Stream:
    """Documents, again and again from the beginning.

    Args:
        path: What errors name.
        source: What they are read from: equal texts stand for equal documents.
        read: Yields the documents after a place, some at a time, until they end.
        encode: Makes items of documents.
        size: The characters of a part, at least, unless it is the last before the stream ends."""

    def __init__(
        self,
        path: str,
        source: str,
        read: Callable[[Place], Documents],
        encode: Callable[[Sequence[str]], Split],
        size: int,
    ) -> None:
        self._path, self.source, self._read, self._encode, self._size = path, source, read, encode, size
        # All is read in one thread. Parts that follow one another are read from files that stay open.
        self._reader = ThreadPoolExecutor(1)
        self._ahead: tuple[Place, Future[StreamPart]] | None = None
        self._next: tuple[Place, Documents] | None = None

    def read_ahead(self, place: Place) -> None:
        """Begins to read the part at a place, unless that has begun."""
        if self._ahead is None or self._ahead[0] != place:
            self._ahead = place, self._reader.submit(self._part, place)

    def part(self, place: Place = None) -> StreamPart:
        """Returns the part that begins at a place.

        Raises:
            TaskError: a document is malformed, or there is none.
            MachineError: the source cannot be reached."""
        self.read_ahead(place)
        assert self._ahead is not None
        (_, part), self._ahead = self._ahead, None
        return part.result()

    def _part(self, place: Place) -> StreamPart:
        documents = self._next[1] if self._next and self._next[0] == place else self._read(place)
        self._next = None  # after an error, a part is read again
        texts, size, after = list[str](), 0, place
        for some, after in documents:
            texts += some
            size += sum(map(len, some))
            if size >= self._size:
                self._next = after, documents
                break
        else:
            after = None  # the beginning
            if not texts:
                if place is None:
                    raise mistakes.no_documents(self._path)
                return self._part(None)
        items = self._encode(texts)
        return StreamPart(
            items.inputs, items.targets, items.scored, items.groups, items.notes, stream=self, place=place, after=after
        )


def check_path(task: str, path: str, streams: bool) -> None:
    """Raises TaskError if a path names a data set of the Hub without its commit, or where nothing is streamed."""
    if (name := _hub_name(path)) is not None:
        if not _HUB.fullmatch(name):
            raise mistakes.no_commit(f"hf://{name}")
        if not streams:
            raise mistakes.not_streamed(task, f"hf://{name}")


def open_stream(task: str, path: str, column: str, encode: Callable[[Sequence[str]], Split], size: int) -> Stream:
    """Returns the documents in a column of the files, or of the data set of the Hub, that a path names.

    Raises:
        TaskError: a file is missing, or is of an unknown form.
        MachineError: the package `datasets` is not installed."""
    if (name := _hub_name(path)) is not None:
        with needs_extra("datasets"):
            import datasets  # noqa: F401 # before anything is read
        rows = max(min(size // _CHARACTERS, _ROWS), 1)
        return Stream(f"hf://{name}", f"hf://{name}", lambda place: _of_hub(name, column, place, rows), encode, size)
    files = files_of(path)
    check_forms(task, files, 1, documents=True)
    return Stream(path, _described(task, files), lambda place: _of_files(task, files, column, place), encode, size)


def _hub_name(path: str) -> str | None:
    found = _IS_HUB.search(path)
    return None if found is None else path[found.end() :].replace("\\", "/")


def _described(task: str, files: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with naming_file(task, path), open_named(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - _TAIL, 0))
            digest.update(f"{os.path.basename(path)} {size}\n".encode() + file.read())
    return f"{plural(len(files), 'file')}, names, sizes and ends sha256:{digest.hexdigest()}"


def _of_files(task: str, files: Sequence[str], column: str, place: Place) -> Documents:
    match place or [0, 0]:
        case [int(first), int(row)] if 0 <= first < len(files) and row >= 0:
            pass
        case _:
            raise ValueError(f"{place!r} is no place in {plural(len(files), 'file')}")
    for index in range(first, len(files)):
        rows = rows_of(task, files[index : index + 1], [column], documents=True)
        for after, (_, split, (text,)) in enumerate(islice(rows, row, None), row + 1):
            yield [str(text)] if split in (None, SPLITS[0]) else [], [index, after]
        row = 0


def _of_hub(name: str, column: str, place: Place, count: int) -> Documents:
    import datasets

    found = _HUB.fullmatch(name)
    assert found is not None, "the task has checked it"
    repository, subset, commit = found.groups()
    source = f"hf://{name}"
    if os.path.isdir(repository):  # which the package would read in its place
        raise mistakes.folder_in_the_way(repository, source)
    try:
        rows = datasets.load_dataset(
            repository, subset, split="train", revision=commit, streaming=True, cache_dir=str(own_cache("datasets"))
        )
        if rows.features is not None and column not in rows.features:
            raise mistakes.no_column_in_stream(source, column, rows.features)
        # Tables take an eighth of the time of rows.
        rows = rows.select_columns([column]).with_format("arrow")
        if place is not None:
            rows.load_state_dict(place)
        for table in rows.iter(count):
            texts = [text for text in table.column(0).to_pylist() if text]
            if not all(isinstance(text, str) for text in texts):
                raise mistakes.not_texts(column, source)
            yield texts, rows.state_dict()
    except ArchlangError:
        raise
    except Exception as error:  # whatever the package, the network and a damaged file raise
        if is_out_of_memory(error):
            raise
        # The others are those of the network.
        is_known = isinstance(error, ValueError | RuntimeError | LookupError | datasets.exceptions.DatasetsError)
        reason = " ".join(str(error).split())[:_MOST_CHARACTERS] or type(error).__name__
        raise (mistakes.bad_stream if is_known else mistakes.stream_broken)(source, reason) from error
