"""Writes pages, pictures and tables to disk."""

from pathlib import Path

from archlang.files.atomic import write_atomically
from archlang.files.os_errors import os_errors_as
from archlang.pages.mistakes import not_written


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file atomically, with the folders that it needs. Text is encoded as UTF-8.

    Raises:
        PageError: The file cannot be written."""
    with os_errors_as(not_written, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
