"""Pages and pictures on disk."""

from __future__ import annotations

from pathlib import Path

from archlang.files.atomic import write_atomically
from archlang.files.os_errors import os_errors_as
from archlang.record.mistakes import not_written


def write_page(path: Path, text: str) -> None:
    """Writes a page atomically, with the folders that it needs.

    Raises:
        RunError: The file cannot be written."""
    with os_errors_as(not_written, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
