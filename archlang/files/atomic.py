"""Files and folders that appear whole or not at all: written beside their place, flushed, and renamed into it."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A new folder to write into, which takes its place at the end; if anything goes wrong, nothing of it is left."""
    beside = place.parent / f".{place.name}.{secrets.token_hex(4)}"
    beside.mkdir()
    try:
        yield beside
        for file in beside.iterdir():
            _flush(file)
        # What was written under this name before is given up: a folder that is not empty cannot be renamed onto.
        shutil.rmtree(place, ignore_errors=True)
        beside.rename(place)
        _flush(place.parent)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_whole(place: Path, text: str) -> None:
    """Writes a text file."""
    beside = place.with_name(f".{place.name}.part")
    try:
        beside.write_text(text, encoding="utf-8", newline="\n")
        _flush(beside)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def remove_unfinished(folder: Path, pattern: str) -> None:
    """Removes what a process that was killed left beside the places that it was writing to."""
    for left in folder.glob(f".{pattern}"):
        shutil.rmtree(left, ignore_errors=True)


def _flush(path: Path) -> None:
    """Waits until a file, or the names in a folder, would survive the loss of power."""
    if path.is_dir() and os.name == "nt":
        return  # Windows opens no folders
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
