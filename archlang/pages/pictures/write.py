"""A picture in a file: its ending says how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archlang.pages.pictures.dot import print_dot
from archlang.pages.pictures.mermaid import print_mermaid
from archlang.pages.pictures.page import print_page
from archlang.pages.pictures.picture import Box
from archlang.pages.pictures.png import PictureError, print_png
from archlang.pages.pictures.svg import print_svg


def write(box: Box, path: Path) -> None:
    """Writes a picture.

    Raises:
        PictureError: there is no such kind of picture, its library is missing, or the file cannot be written."""
    writers: dict[str, Callable[[Box], str | bytes]] = {
        ".html": print_page,
        ".svg": print_svg,
        ".dot": print_dot,
        ".mmd": print_mermaid,
        ".png": print_png,
    }
    if path.suffix not in writers:
        raise PictureError(f"`{path}` is no kind of picture", f"end it in one of {', '.join(writers)}")
    made = writers[path.suffix](box)
    try:
        path.write_bytes(made if isinstance(made, bytes) else made.encode())
    except OSError as error:
        raise PictureError(f"`{path}` cannot be written: {error.strerror}", "name another file") from None
