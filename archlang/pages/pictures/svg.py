"""A picture as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archlang.pages.html import render
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.columns import place_readably
from archlang.pages.pictures.label import LINE_HEIGHT, PADDING
from archlang.pages.pictures.legend import legend_of
from archlang.pages.pictures.placement import place_boxes

if TYPE_CHECKING:
    from markupsafe import Markup

MARGIN = 10.0  # around the picture, in pixels


def print_svg(box: Box, foldable: bool = False) -> Markup:
    """Returns the picture as an SVG file with its styles; of several boxes with the same content, the first shows it.
    With `foldable`, returns all boxes unfolded, for a page that has the styles and `picture.js`."""
    placed = place_boxes(box) if foldable else place_readably(box)
    return render(
        "picture.svg", placed=placed, legend=legend_of(placed), margin=MARGIN, padding=PADDING,
        line_height=LINE_HEIGHT, styled=not foldable,
    )  # fmt: skip
