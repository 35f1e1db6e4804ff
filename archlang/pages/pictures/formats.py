"""Writes a picture to a file in the format of the file's suffix."""

from collections.abc import Callable, Mapping
from pathlib import Path

from archlang.pages.files import write_file
from archlang.pages.mistakes import unknown_picture_format
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.dot import print_dot
from archlang.pages.pictures.mermaid import print_mermaid
from archlang.pages.pictures.page import print_page
from archlang.pages.pictures.png import print_pdf, print_png
from archlang.pages.pictures.svg import print_svg

FORMATS: Mapping[str, Callable[[Box], str | bytes]] = {
    ".html": print_page,
    ".svg": print_svg,
    ".pdf": print_pdf,
    ".png": print_png,
    ".dot": print_dot,
    ".mmd": print_mermaid,
}


def write_picture(box: Box, path: Path) -> None:
    """Writes a picture.

    Raises:
        PageError: No format has this suffix, its library is missing, or the file cannot be written."""
    if path.suffix not in FORMATS:
        raise unknown_picture_format(path, FORMATS)
    write_file(path, FORMATS[path.suffix](box))
