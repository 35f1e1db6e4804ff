"""A picture as PNG, by resvg, which brings all that it needs."""

from __future__ import annotations

import re

from archlang.diagnostics import ArchlangError
from archlang.pages.pictures.picture import Box
from archlang.pages.pictures.svg import print_svg


class PictureError(ArchlangError):
    """A picture that cannot be written, and what to do about it."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(message)


def print_png(box: Box) -> bytes:
    """The picture as a PNG file, in light colours.

    Raises:
        PictureError: resvg-py is not installed."""
    try:
        import resvg_py
    except ImportError:
        raise PictureError(
            "a PNG is made by resvg-py, which is not installed",
            "run `pip install 'archlang[view]'`, or write an .svg",
        ) from None
    return bytes(resvg_py.svg_to_bytes(svg_string=_plain(print_svg(box)), background="#ffffff"))


def _plain(svg: str) -> str:
    """The drawing with the colours themselves: resvg knows no variables."""
    style = svg[svg.index("<style>") : svg.index("</style>")]
    light = style[: style.index("@media")]
    colours = dict(re.findall(r"(--[a-z]+): (#[0-9a-f]+)", light))
    rest = style[style.index(".picture text {") :]
    for name, colour in colours.items():
        rest = rest.replace(f"var({name})", colour)
    rest = rest.replace("ui-monospace, ", "")
    return svg.replace(style, "<style>" + rest)
