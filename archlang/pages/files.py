"""Pages and pictures on disk."""

from __future__ import annotations

from pathlib import Path

from archlang.files.atomic import write_whole
from archlang.record.mistakes import not_written


def write_page(place: Path, text: str) -> None:
    """Writes a page whole or not at all.

    Raises:
        RunError: it cannot be written."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)
    except OSError as error:
        raise not_written(place, error.strerror or str(error)) from error
