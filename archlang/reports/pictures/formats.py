"""A picture as a file, in the format of its suffix (SVG, a page, an image, Mermaid), or as text for the terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.reports.pages import asset, library_missing, render, write_file
from archlang.reports.pictures.box import CHARACTER_WIDTH, LINE_HEIGHT, PADDING, Box, label_text
from archlang.reports.pictures.placement import PlacedBox, place_boxes, place_readably

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


# The legend: what the colours and lines that occur in a picture mean

# In pixels.
_SAMPLE_WIDTH = 28.0
_GAP = 18.0
_LEAST_WIDTH = 420.0
_TOP = 12.0

_MEANINGS = {
    "loop": "loop",
    "state": "state or result",
    "back": "to the next step",
    "shared": "≡ boxes with one number share weights",
    "gone": "only in the first",
    "new": "only in the second",
    "changed": "differs",
}


@dataclass(frozen=True)
class LegendSample:
    """A sample of the boxes or lines of some classes, with its meaning, at its place in the legend."""

    classes: str
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Legend:
    """A legend with its size in pixels; without samples, if nothing needs an explanation."""

    samples: tuple[LegendSample, ...]
    width: float = 0.0
    height: float = 0.0


def legend_of(placed: PlacedBox) -> Legend:
    """Returns the legend of a picture, in lines as wide as the picture."""
    occurring = set(_classes(placed))
    samples: list[LegendSample] = []
    x, y, width = 0.0, _TOP, 0.0
    for classes, text in _MEANINGS.items():
        if classes not in occurring:
            continue
        sample_width = _SAMPLE_WIDTH + len(text) * CHARACTER_WIDTH
        if x and x + sample_width > max(placed.width, _LEAST_WIDTH):
            x, y = 0.0, y + LINE_HEIGHT + 4
        samples.append(LegendSample(classes, text, x, y))
        x += sample_width + _GAP
        width = max(width, x - _GAP)
    return Legend(tuple(samples), width, y + LINE_HEIGHT) if samples else Legend(())


def _classes(placed: PlacedBox) -> Iterator[str]:
    yield from placed.classes.split()
    if any(route.back for route in placed.routes):
        yield "back"
    for child in placed.children:
        yield from _classes(child)


# Images and pages


def print_page(box: Box, card: str = "") -> str:
    """Returns the picture as an HTML file, with the text of the card of the architecture."""
    return render("picture.html", title=box.title, svg=print_svg(box, foldable=True), card=card)


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


# Mermaid, which GitHub and GitLab render in Markdown


def print_mermaid(box: Box) -> str:
    """Returns the picture as a .mmd file. Boxes with children are subgraphs."""
    box = box.without_repeats()
    ids = {inner.id: f"b{number}" for number, inner in enumerate(box.walk())}
    return "\n".join(["flowchart TD", *_subgraph(box, ids, "    ")]) + "\n"


def _subgraph(box: Box, ids: Mapping[str, str], indent: str) -> Iterator[str]:
    yield f"{indent}subgraph {ids[box.id]}[{_mermaid_label(box)}]"
    for child in box.boxes:
        if child.boxes:
            yield from _subgraph(child, ids, indent + "    ")
        else:
            yield f"{indent}    {ids[child.id]}[{_mermaid_label(child)}]"
    yield f"{indent}end"
    for edge in box.edges:
        yield f"{indent}{ids[edge.source]} {'-.->' if edge.back else '-->'} {ids[edge.target]}"


def _mermaid_label(box: Box) -> str:
    return '"' + "<br/>".join("".join(map(_escaped, line)) for line in label_text(box)) + '"'


def _escaped(character: str) -> str:
    return f"#{ord(character)};" if character in '"#<>&;`\\[]{}|' else character


# A tree, for the terminal


def print_tree(box: Box) -> str:
    """Returns the picture as text, one line for each box. The results of a loop stand at the end of its body."""
    heading = "  ".join([box.title, *box.notes])
    return "\n".join([heading, *_tree(box.without_repeats(), "")]) + "\n"


def _tree(box: Box, indent: str) -> Iterator[str]:
    outputs = {child.id: child.output for child in box.boxes}
    sources = {edge.target: edge.source for edge in box.edges if not edge.back}
    children = sorted(box.boxes, key=lambda child: child.kind == "result")
    for index, child in enumerate(children):
        last = index == len(children) - 1
        title = f"{child.title} [weights {child.badge}]" if child.badge else child.title
        text = "  ".join([title, *child.notes])
        if child.kind == "result":
            source = outputs.get(sources.get(child.id, ""), "")
            text = f"{child.title} ← {source}" if source else child.title
        elif child.output:
            text += f"  → {child.output}"
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _tree(child, indent + ("   " if last else "│  "))


# Files


FORMATS: Mapping[str, Callable[[Box], str | bytes]] = {
    ".html": print_page,
    ".svg": print_svg,
    ".png": print_png,
    ".mmd": print_mermaid,
}


def write_picture(box: Box, path: Path, card: Callable[[], str] = str) -> None:
    """Writes a picture in the format of the path's suffix, which is one of `FORMATS`; a page with the text of `card`.

    Raises:
        PageError: The library of the format is missing, or the file cannot be written."""
    write_file(path, print_page(box, card()) if path.suffix == ".html" else FORMATS[path.suffix](box))
