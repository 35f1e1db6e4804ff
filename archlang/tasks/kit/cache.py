"""Generated splits kept on disk: made once, checked when read, mapped into memory.

A split is a folder of `.npy` files with `manifest.json`, written beside its place and renamed into it, so that a
reader sees a whole split or none and two processes that make the same one do no harm. A cache that cannot be written
(full, read-only, no home folder) costs time and not the run: the split is returned from memory, with a warning. What
was generated under an older `version` of a task is never read again."""

from __future__ import annotations

import hashlib
import json
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from archlang.files.atomic import atomic_folder, remove_folder
from archlang.source.cache_folder import cache_folder
from archlang.tasks.kit import published_files
from archlang.tasks.kit.mistakes import CacheWarning
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Task
from archlang.types.statics import StaticValue

# Runs of different seeds differ in their weights and batches; the data of a task are the same for all, as published
# data are.
DATA_SEED = 0
_FORMAT = 1
_MANIFEST = "manifest.json"
_CHUNK = 1 << 20


@runtime_checkable
class ReadsUserFiles(Protocol):
    """A task that reads files of the user's own."""

    def files(self) -> tuple[str, ...]:
        """Where they are."""


class _Damaged(Exception):
    """What is stored is not what was written."""


def load(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> Split:
    """The split of `task`, which was made from `statics`; generated only if the cache does not hold it.

    Arrays that come from the cache are mapped read-only."""
    try:
        place = folder() / f"{name}-{split}-{_key(name, statics, task, split, seed)}"
    except OSError as error:
        warnings.warn(f"there is no cache folder ({error}); set ARCHLANG_CACHE", CacheWarning, stacklevel=2)
        return task.generate(split, seed)
    try:
        return _read(place)
    except FileNotFoundError:
        pass
    except (_Damaged, OSError) as error:
        warnings.warn(f"{place} is damaged ({error}) and is made again", CacheWarning, stacklevel=2)
        remove_folder(place)
    made = task.generate(split, seed)
    try:
        _write(place, made)
        return _read(place)
    except (_Damaged, OSError) as error:
        warnings.warn(
            f"the {split} split of {name} could not be kept in {place.parent} ({error}), so every run makes it again; "
            "set ARCHLANG_CACHE to a folder with room",
            CacheWarning,
            stacklevel=2,
        )
        return made


def folder() -> Path:
    """Where splits are kept.

    Raises:
        OSError: there is no cache folder."""
    return cache_folder() / "tasks"


def _key(name: str, statics: Mapping[str, StaticValue], task: Task, split: str, seed: int) -> str:
    told = {key: _plain(value) for key, value in sorted(statics.items())}
    facts: list[object] = [_FORMAT, name, task.version, split, seed, told]
    if files := published_files.versions(task):
        facts.append(files)
    if own := _own(task):
        facts.append(own)
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:32]


def _plain(value: StaticValue) -> object:
    """A static as JSON that differs where statics differ (`1` and `1.0`, `true` and the word `true`)."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bool | int | float):
        return [type(value).__name__, repr(value)]
    return str(value)


def _own(task: Task) -> list[str | None]:
    """Digests of what is a user's own: the files that a task reads, and the file of a class that is not archlang's."""
    files = list(task.files()) if isinstance(task, ReadsUserFiles) else []
    module = type(task).__module__
    source = None if module.startswith("archlang.") else getattr(sys.modules.get(module), "__file__", None)
    return [_digest_of(Path(file)) for file in (*files, source) if file]


def _digest_of(file: Path) -> str | None:
    """None for what cannot be read: making the split says so."""
    try:
        return _sha256(file) if file.is_file() else None
    except OSError:
        return None


def _read(place: Path) -> Split:
    manifest = place / _MANIFEST
    try:
        described = json.loads(manifest.read_text(encoding="utf-8"))
        digests = {str(name): str(digest) for name, digest in described["sha256"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _Damaged(f"{_MANIFEST} cannot be read") from error
    except FileNotFoundError:
        if place.exists():
            raise _Damaged(f"{_MANIFEST} is missing") from None
        raise
    arrays: dict[str, np.ndarray] = {}
    for name, digest in digests.items():
        path = place / f"{name}.npy"
        try:
            if _sha256(path) != digest:
                raise _Damaged(f"{path.name} is not what was written")
            arrays[name] = np.load(path, mmap_mode="r", allow_pickle=False)
        except FileNotFoundError:
            raise _Damaged(f"{path.name} is missing") from None
        except ValueError:
            # An empty array cannot be mapped.
            arrays[name] = np.load(path, allow_pickle=False)
    try:
        return Split.from_arrays(arrays)
    except KeyError as error:
        raise _Damaged(f"{error} is missing") from error


def _write(place: Path, split: Split) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    # If another process was first, its folder stays: it holds the same.
    with atomic_folder(place, overwrite=False, durable=False) as unfinished:
        digests = {}
        for name, array in split.arrays().items():
            path = unfinished / f"{name}.npy"
            np.save(path, array, allow_pickle=False)
            digests[name] = _sha256(path)
        # In order: the fields of a split are a model's inputs, one after another.
        text = json.dumps({"format": _FORMAT, "sha256": digests}, indent=1)
        (unfinished / _MANIFEST).write_text(text, encoding="utf-8")


def _sha256(path: Path) -> str:
    whole = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
    return whole.hexdigest()
