"""A picture as PNG, drawn by resvg."""

import re

from archlang.pages.html import asset
from archlang.pages.mistakes import library_missing
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.svg import print_svg


def print_png(box: Box) -> bytes:
    """Returns the picture as a PNG file in light colours.

    Raises:
        PageError: resvg-py is not installed."""
    try:
        import resvg_py
    except ImportError:
        raise library_missing("PNG pictures", "resvg-py", "write an .svg") from None
    style = str(asset("picture.css"))
    svg = str(print_svg(box)).replace(style, _without_variables(style))
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, background="#ffffff"))


def _without_variables(style: str) -> str:
    """Replaces the variables by the light colours: resvg supports no variables and no media queries."""
    light = style[: style.index("@media")]
    rules = style[style.index(".picture text {") :].replace("ui-monospace, ", "")
    for name, colour in re.findall(r"(--[a-z]+): (#[0-9a-f]+)", light):
        rules = rules.replace(f"var({name})", colour)
    return rules
