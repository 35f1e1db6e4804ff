"""A picture as PNG and PDF, drawn by resvg."""

import io
import re

from archlang.pages.html import asset
from archlang.pages.mistakes import library_missing
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.svg import print_svg

_PIXELS = 4  # of a PDF, for each unit of the picture, which is 1/96 inch there


def print_pdf(box: Box) -> bytes:
    """Returns the picture as a PDF file of one page in light colours, as an image of 384 dots an inch.

    Raises:
        PageError: resvg-py is not installed."""
    from PIL import Image

    file = io.BytesIO()
    with Image.open(io.BytesIO(print_png(box, _PIXELS))) as image:
        image.convert("L" if image.mode == "L" else "RGB").save(file, "PDF", resolution=96 * _PIXELS, quality=95)
    return file.getvalue()


def print_png(box: Box, zoom: float = 1) -> bytes:
    """Returns the picture as a PNG file in light colours.

    Raises:
        PageError: resvg-py is not installed."""
    try:
        import resvg_py
    except ImportError:
        raise library_missing("PNG pictures", "resvg-py", "write an .svg") from None
    style = str(asset("picture.css"))
    svg = str(print_svg(box)).replace(style, _without_variables(style))
    return bytes(resvg_py.svg_to_bytes(svg_string=svg, background="#ffffff", zoom=zoom))


def _without_variables(style: str) -> str:
    """Replaces the variables by the light colours: resvg supports no variables and no media queries."""
    light = style[: style.index("@media")]
    rules = style[style.index(".picture text {") :].replace("ui-monospace, ", "")
    for name, colour in re.findall(r"(--[a-z]+): (#[0-9a-f]+)", light):
        rules = rules.replace(f"var({name})", colour)
    return rules
