"""The cache of generated splits: verified when loaded, and memory-mapped.

A split is a folder of `.npy` files with `manifest.json`, written atomically, so that a reader never sees an unfinished
split, and two processes may generate the same split. If the cache cannot be written (full, read-only, no home folder),
`load` warns and returns the split from memory. Raising the `version` of a task invalidates its cached splits."""

import hashlib
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from archlang.disk.atomic import atomic_folder, remove_folder
from archlang.disk.cache_folder import cache_folder, own_cache
from archlang.disk.limits import LARGEST_JSON
from archlang.disk.os_errors import machine_remedy, os_reason
from archlang.disk.readable import open_named, read_named
from archlang.errors.machine import is_out_of_memory
from archlang.tasks.kit import published_files
from archlang.tasks.kit.make_task import checked
from archlang.tasks.kit.mistakes import CacheWarning
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Task
from archlang.types.statics import StaticValue

# The seed of a run determines its weights and batches. The data of a task are the same for all runs, as published data
# are.
DATA_SEED = 0
_FORMAT = 1
_FOLDER = "tasks"
_MANIFEST = "manifest.json"


@runtime_checkable
class ReadsUserFiles(Protocol):
    """A task that reads files of the user's own."""

    def files(self) -> tuple[str, ...]:
        """Returns the paths of these files."""


class _Damaged(Exception):
    """A cached split that differs from the written one."""


def load(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> Split:
    """Loads a split of `task`, whose statics are `statics`, or generates and caches it.

    Arrays from the cache are memory-mapped and read-only.

    Raises:
        TaskError, DataError: the split cannot be generated."""
    try:
        path = own_cache(_FOLDER) / f"{name}-{split}-{_key(name, statics, task, split, seed)}"
    except OSError as error:
        warnings.warn(f"splits are not cached ({error}); set ARCHLANG_CACHE", CacheWarning, stacklevel=2)
        return checked(name, task, split, task.generate(split, seed))
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except (_Damaged, OSError) as error:
        if is_out_of_memory(error):
            raise
        if isinstance(error, OSError) and machine_remedy(error) is not None:
            message = f"{path} cannot be read ({os_reason(error)}), so this run generates the split again"
            warnings.warn(message, CacheWarning, stacklevel=2)
            return checked(name, task, split, task.generate(split, seed))
        warnings.warn(f"{path} is damaged ({error}) and is generated again", CacheWarning, stacklevel=2)
        remove_folder(path)
    generated = checked(name, task, split, task.generate(split, seed))
    try:
        _write(path, generated)
        return _read(path)
    except (_Damaged, OSError) as error:
        warnings.warn(
            f"the {split} split of {name} cannot be cached in {path.parent} ({error}), so every run generates it; "
            "set ARCHLANG_CACHE to a folder with free space",
            CacheWarning,
            stacklevel=2,
        )
        return generated


def folder() -> Path:
    """Returns the folder of cached splits.

    Raises:
        OSError: there is no cache folder."""
    return cache_folder() / _FOLDER


def _key(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> str:
    plain = {key: _plain(value) for key, value in sorted(statics.items())}
    facts: list[object] = [_FORMAT, name, task.version, split, seed, plain]
    # The vocabulary of a run, in place of that of the files.
    facts += [stored for stored in (getattr(task, "stored", ()),) if any(stored)]
    facts += [versions for versions in (published_files.versions(task), _user_digests(task)) if versions]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _plain(value: StaticValue) -> object:
    """Returns a static as JSON, different for different statics (`1` and `1.0`, `true` and the word `true`)."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | float):
        return [type(value).__name__, repr(value)]
    return str(value)


def _user_digests(task: Task) -> list[str | None]:
    """Returns the digests of the user's own files that a task reads, and of the source file of a user's own class."""
    files = list(task.files()) if isinstance(task, ReadsUserFiles) else []
    module = type(task).__module__
    source = None if module.startswith("archlang.") else getattr(sys.modules.get(module), "__file__", None)
    return [_digest(Path(file)) for file in (*files, source) if file]


def _digest(file: Path) -> str | None:
    """Returns None if the file cannot be read; generating the split then raises the error."""
    try:
        return _sha256(file) if file.is_file() else None
    except OSError:
        return None


def _read(folder: Path) -> Split:
    manifest = folder / _MANIFEST
    try:
        content = json.loads(read_named(manifest, LARGEST_JSON))
        digests = {str(name): str(digest) for name, digest in content["sha256"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Damaged(f"{_MANIFEST} cannot be read") from error
    except FileNotFoundError:
        if folder.exists():
            raise _Damaged(f"{_MANIFEST} is missing") from None
        raise
    arrays: dict[str, np.ndarray] = {}
    for name, digest in digests.items():
        path = folder / f"{name}.npy"
        try:
            if _sha256(path) != digest:
                raise _Damaged(f"{path.name} differs from what was written")
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise _Damaged(f"{path.name} is missing") from None
        except ValueError:
            # An empty array cannot be memory-mapped.
            arrays[name] = np.load(path, allow_pickle=False)
    try:
        return Split.from_arrays(arrays)
    except KeyError as error:
        raise _Damaged(f"{error} is missing") from error


def _write(folder: Path, split: Split) -> None:
    # If another process was first, its equal folder stays.
    with atomic_folder(folder, overwrite=False, durable=False) as unfinished:
        digests = {}
        for name, array in split.arrays().items():
            path = unfinished / f"{name}.npy"
            np.save(path, array, allow_pickle=False)
            digests[name] = _sha256(path)
        # The order of the arrays matters: the fields of a split are the positional inputs of a model.
        text = json.dumps({"format": _FORMAT, "sha256": digests}, indent=1)
        (unfinished / _MANIFEST).write_text(text, encoding="utf-8")


def _sha256(path: Path) -> str:
    with open_named(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
