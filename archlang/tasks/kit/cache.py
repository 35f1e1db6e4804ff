"""The cache of what tasks generate and read: arrays and facts, verified when loaded, and memory-mapped.

An entry is a folder of `.npy` files with `manifest.json`, written piece by piece and atomically, so that a reader never
sees an unfinished entry, and two processes may make the same one. If the cache cannot be written (full, read-only, no
home folder), an entry is made in memory, with a warning. Raising the `version` of a task invalidates its splits."""

import hashlib
import json
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from io import BufferedWriter
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from filelock import FileLock

from archlang.data.mistakes import DataError
from archlang.data.registry import DigestRule, take
from archlang.data.stored import Stored, digest_of
from archlang.disk.cache_folder import own_cache
from archlang.disk.folder import Folder, remove_folder
from archlang.disk.limits import LARGEST_JSON
from archlang.disk.readable import open_named, read_named
from archlang.errors.machine import is_out_of_memory
from archlang.tasks.kit import published_files
from archlang.tasks.kit.make_task import checked, is_shipped
from archlang.tasks.kit.mistakes import CacheWarning
from archlang.tasks.kit.split import Part, Parts, Ragged, Split, arrays_of, digest, join_parts
from archlang.tasks.kit.task import Task, streamed_splits
from archlang.types.statics import StaticValue

# The seed of a run determines its weights and batches. The data of a task are the same for all runs, as published data
# are.
DATA_SEED = 0
_FORMAT = 3
_FOLDER = "tasks"
_MANIFEST = "manifest.json"

Facts = Mapping[str, Any]  # Any: JSON


class Entry(NamedTuple):
    """What the cache holds under a key."""

    parts: Parts
    facts: Facts


@runtime_checkable
class ReadsUserFiles(Protocol):
    """A task that reads files of the user's own."""

    def files(self) -> tuple[str, ...]:
        """Returns the paths of these files."""


class _Damaged(Exception):
    """An entry that differs from the written one."""


def load(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> Split:
    """Loads a split of `task`, whose statics are `statics`, or generates and caches it. Of a stream, reads the first
    part, and stores nothing.

    Arrays from the cache are memory-mapped: processes share them, and what is written to them is not stored.

    Raises:
        TaskError, DataError: the split cannot be generated."""
    if split in streamed_splits(task):
        return task.generate(split, seed)

    @cache
    def generated() -> list[Parts]:
        return [checked(name, task, split, task.generate(split, seed)).parts()]

    def pieces() -> Iterable[Parts]:
        # A class of the user's own may generate other items than the class that it extends.
        some_at_a_time = getattr(task, "pieces", None) if is_shipped(task) else None
        return generated() if some_at_a_time is None else (piece.parts() for piece in some_at_a_time(split, seed))

    parts, facts = entry(
        f"{name}-{split}", _key(name, statics, task, split, seed), pieces,
        lambda parts: {"sha256": digest(Split.of_parts(parts))},
    )  # fmt: skip
    loaded = Split.of_parts(parts)
    loaded.__dict__["sha256"] = facts["sha256"]
    return loaded


def entry(
    name: str, key: object, pieces: Callable[[], Iterable[Parts]], facts: Callable[[Parts], Facts] = lambda _: {}
) -> Entry:
    """Returns the entry `name` with a `key` of JSON, or makes it: from the `pieces` of its parts, one after another,
    and from the `facts` about them."""

    def in_memory() -> Entry:
        parts = join_parts(pieces())
        return Entry(parts, facts(parts))

    hashed = hashlib.sha256(json.dumps([_FORMAT, name, key], sort_keys=True).encode()).hexdigest()[:32]
    try:
        path = own_cache(_FOLDER) / f"{name}-{hashed}"
        with nullcontext() if path.exists() else _alone(path):
            try:
                return _read(path)
            except FileNotFoundError:
                pass
            except _Damaged as error:
                warnings.warn(f"{path} is damaged ({error}) and is generated again", CacheWarning, stacklevel=2)
                remove_folder(path)
            _write(path, pieces, facts)
            return _read(path)
    except (_Damaged, OSError) as error:
        if is_out_of_memory(error):
            raise
        message = f"{name} cannot be cached ({error}), so every run generates it; set ARCHLANG_CACHE to a folder"
        warnings.warn(f"{message} of yours with free space", CacheWarning, stacklevel=2)
        return in_memory()


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Waits for another process that makes the same entry, where the file system has locks."""
    with ExitStack() as stack:
        with suppress(OSError, NotImplementedError):
            stack.enter_context(FileLock(own_cache("locks") / f"{path.name}.lock"))
        yield


def _key(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> list[object]:
    plain = {key: _plain(value) for key, value in sorted(statics.items())}
    # The vocabulary of a run, in place of that of the files.
    stored = [list(words) for words in getattr(task, "stored", ())]
    return [task.version, seed, plain, stored, published_files.versions(task), _user_digests(task)]


def _plain(value: StaticValue) -> object:
    """Returns a static as JSON, different for different statics (`1` and `1.0`, `true` and the word `true`)."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | float):
        return [type(value).__name__, repr(value)]
    return str(value)


def _user_digests(task: Task) -> list[str | None]:
    files = list(task.files()) if isinstance(task, ReadsUserFiles) else []
    source = None if is_shipped(task) else getattr(sys.modules.get(type(task).__module__), "__file__", None)
    return [_digest(Path(file)) for file in (*files, source) if file]


def _digest(file: Path) -> str | None:
    """Returns None if the file cannot be read; generating the split then raises the error."""
    try:
        return str(digest_of(Stored(file)))
    except DataError:
        return None


def _read(folder: Path) -> Entry:
    manifest = folder / _MANIFEST
    try:
        written = json.loads(read_named(manifest, LARGEST_JSON))
        content = written["content"]
        if written["sha256"] != _check(content):
            raise _Damaged(f"{_MANIFEST} differs from what was written")
        parts = {
            name: _mapped(_files_of_array(folder, name, len(digests)), digests)
            for name, digests in content["parts"].items()
        }
        return Entry(parts, content["facts"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Damaged(f"{_MANIFEST} cannot be read") from error
    except FileNotFoundError as error:
        if folder.exists():
            raise _Damaged(f"{Path(error.filename).name} is missing") from None
        raise


def _files_of_array(folder: Path, name: str, arrays: int) -> list[Path]:
    return [folder / f"{name}{kind}.npy" for kind in (("",) if arrays == 1 else (".values", ".offsets"))]


def _mapped(places: Sequence[Path], digests: Sequence[str] = ()) -> Part:
    """Maps a part. The digest of a large array is computed only if the file has changed since it was verified."""
    for place, expected in zip(places, digests, strict=False):
        try:
            if str(digest_of(Stored(place))) != expected:
                raise _Damaged(f"{place.name} differs from what was written")
        except DataError as error:
            raise error.__cause__ or error from None
    arrays = []
    for place in places:
        try:
            # Indexing a plain array is faster than indexing a `memmap`.
            arrays.append(np.asarray(np.load(place, mmap_mode="c", allow_pickle=False)))
        except ValueError:
            # An empty array cannot be memory-mapped.
            arrays.append(np.asarray(np.load(place, allow_pickle=False)))
    return Ragged(*arrays) if len(arrays) > 1 else arrays[0]


def _write(path: Path, pieces: Callable[[], Iterable[Parts]], facts: Callable[[Parts], Facts]) -> None:
    # If another process was first, its equal folder stays.
    with Folder.open(path.parent) as parent, parent.new_folder(path.name, overwrite=False, durable=False) as unfinished:
        files: dict[str, list[_GrowingFile]] = {}
        with ExitStack() as stack:
            for piece in pieces():
                for name, part in piece.items():
                    if name not in files:
                        files[name] = [
                            _GrowingFile(stack.enter_context(unfinished.create_file(f"{file}.npy")), array)
                            for file, array in arrays_of({name: part}).items()
                        ]
                    if isinstance(part, Ragged):
                        values, offsets = files[name]
                        offsets.append(part.offsets[1:] + values.rows if offsets.rows else part.offsets)
                        values.append(part.values)
                    else:
                        files[name][0].append(part)
            for file in chain.from_iterable(files.values()):
                file.write_header()
        places = {name: _files_of_array(unfinished.path, name, len(arrays)) for name, arrays in files.items()}
        content = {
            # The order of the parts matters: the fields of a split are the positional inputs of a model.
            "parts": {name: [_sha256(place) for place in part] for name, part in places.items()},
            "facts": facts({name: _mapped(part) for name, part in places.items()}),
        }
        unfinished.write(_MANIFEST, json.dumps({"content": content, "sha256": _check(content)}), durable=False)


def _sha256(path: Path) -> str:
    with open_named(path) as stream:
        return str(take(DigestRule.SHA256, stream, 0))


def _check(content: object) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class _GrowingFile:
    """A `.npy` file that is written row by row, while the number of rows is unknown."""

    def __init__(self, file: BufferedWriter, like: np.ndarray) -> None:
        self._file, self._like, self.rows = file, like[:0], 0
        self.write_header()

    def append(self, rows: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(rows, self._like.dtype).data.cast("B") if rows.size else b"")
        self.rows += len(rows)

    def write_header(self) -> None:
        # numpy leaves room in a header for more digits of the number of rows.
        header = np.lib.format.header_data_from_array_1_0(self._like)
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(self._file, header | {"shape": (self.rows, *self._like.shape[1:])})
