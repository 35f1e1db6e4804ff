"""A picture as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archlang.pages.html import render
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.label import LINE_HEIGHT, PADDING
from archlang.pages.pictures.placement import place_boxes

if TYPE_CHECKING:
    from markupsafe import Markup


def print_svg(box: Box, styled: bool = True) -> Markup:
    """Returns the picture as an SVG file with all boxes unfolded; without `styled`, for a page that has the styles."""
    return render("picture.svg", placed=place_boxes(box), margin=PADDING, line_height=LINE_HEIGHT, styled=styled)
