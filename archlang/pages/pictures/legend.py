"""The legend of a picture: what the colours and lines that occur in it mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archlang.pages.pictures.label import CHARACTER_WIDTH, LINE_HEIGHT
from archlang.pages.pictures.placement import PlacedBox

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
class Sample:
    """A sample of the boxes or lines of some classes, with its meaning, at its place in the legend."""

    classes: str
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Legend:
    """A legend with its size in pixels; without samples, if nothing needs an explanation."""

    samples: tuple[Sample, ...]
    width: float = 0.0
    height: float = 0.0


def legend_of(placed: PlacedBox) -> Legend:
    """Returns the legend of a picture, in lines as wide as the picture."""
    occurring = set(_classes(placed))
    samples: list[Sample] = []
    x, y, width = 0.0, _TOP, 0.0
    for classes, text in _MEANINGS.items():
        if classes not in occurring:
            continue
        sample_width = _SAMPLE_WIDTH + len(text) * CHARACTER_WIDTH
        if x and x + sample_width > max(placed.width, _LEAST_WIDTH):
            x, y = 0.0, y + LINE_HEIGHT + 4
        samples.append(Sample(classes, text, x, y))
        x += sample_width + _GAP
        width = max(width, x - _GAP)
    return Legend(tuple(samples), width, y + LINE_HEIGHT) if samples else Legend(())


def _classes(placed: PlacedBox) -> Iterator[str]:
    yield from placed.classes.split()
    if any(route.back for route in placed.routes):
        yield "back"
    for child in placed.children:
        yield from _classes(child)
