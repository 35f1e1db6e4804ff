"""Files and folders that appear complete or not at all: written beside their destination and renamed into it."""

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def atomic_folder(destination: Path, *, overwrite: bool = True, durable: bool = True) -> Iterator[Path]:
    """Yields a new folder to write into and renames it to `destination` at the end; after an error it is removed.

    Args:
        overwrite: Replace an existing destination. If false, an existing destination stays and the new folder is
            removed: for processes that may write the same content at the same time.
        durable: Flush to disk before renaming. Caches that verify their content can skip the flush.

    Raises:
        OSError: The folder cannot be written; an existing destination is unchanged."""
    unfinished = _temporary(destination)
    unfinished.mkdir()
    try:
        yield unfinished
        if durable:
            for file in unfinished.iterdir():
                _flush(file)
        if overwrite:
            remove_folder(destination)
        try:
            unfinished.rename(destination)
        except OSError:
            # A folder that is not empty cannot be renamed onto.
            if overwrite or not destination.exists():
                raise
        if durable:
            _flush(destination.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def write_atomically(destination: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Writes bytes, or text as UTF-8, to a file, which keeps the permissions of the file that it replaces.

    Args:
        durable: Flush to disk before renaming. Caches that verify their content can skip the flush.

    Raises:
        OSError: The file cannot be written; an existing destination is unchanged."""
    unfinished = _temporary(destination)
    try:
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        with suppress(FileNotFoundError):
            unfinished.chmod(destination.stat().st_mode)
        if durable:
            _flush(unfinished)
        unfinished.replace(destination)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Removes a folder in one step for other processes: renames it, then deletes it. Errors are ignored."""
    removed = _temporary(folder)
    with suppress(OSError):  # missing, removed by another process, or immovable
        folder.rename(removed)
    shutil.rmtree(removed, ignore_errors=True)


def remove_unfinished(folder: Path, pattern: str) -> None:
    """Removes the temporary files and folders of killed processes from `folder`: those named `.` and the pattern."""
    for unfinished in folder.glob(f".{pattern}"):
        if unfinished.is_dir():
            shutil.rmtree(unfinished, ignore_errors=True)
        else:
            unfinished.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Returns whether a killed process may have left a file or folder of this name."""
    return name.startswith(".") and name.endswith(".part")


def _temporary(destination: Path) -> Path:
    """Returns a name beside `destination` that no other process uses."""
    return destination.with_name(f".{destination.name}.{secrets.token_hex(4)}.part")


def _flush(path: Path) -> None:
    """Blocks until a file, or the names in a folder, would survive a power failure."""
    if path.is_dir() and os.name == "nt":
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
