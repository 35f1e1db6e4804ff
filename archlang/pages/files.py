"""Writes pages, pictures and tables to disk."""

from __future__ import annotations

from pathlib import Path

from archlang.files.atomic import write_whole
from archlang.pages.mistakes import not_written


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file atomically, with the folders that it needs. Text is encoded as UTF-8.

    Raises:
        PageError: The file cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content)
    except OSError as error:
        raise not_written(path, error.strerror or str(error)) from error
