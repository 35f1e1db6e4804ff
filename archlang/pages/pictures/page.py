"""A picture as a page that pans, zooms and folds, with names for screen readers."""

from archlang.pages.html import render
from archlang.pages.pictures.box import Box
from archlang.pages.pictures.svg import print_svg


def print_page(box: Box) -> str:
    """Returns the picture as an HTML file."""
    return render("picture.html", title=box.title, svg=print_svg(box, foldable=True))
