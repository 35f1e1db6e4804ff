"""A picture in a file: its ending says how."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from archlang.view.dot import print_dot
from archlang.view.mermaid import print_mermaid
from archlang.view.page import print_page
from archlang.view.picture import Box
from archlang.view.png import PictureError, print_png
from archlang.view.svg import print_svg


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
