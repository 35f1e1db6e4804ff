"""The data of a picture: boxes within boxes, and the edges between them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from archlang.errors.visible import visible


@dataclass(frozen=True)
class Edge:
    """Values that flow between two boxes of one parent. A `back` edge leads from one step of a loop to the next."""

    source: str
    target: str
    back: bool = False


@dataclass(frozen=True)
class Box:
    """One box of a picture.

    Args:
        kind: The operation of a node of the graph, or `model` (the outermost box), `input` (of a model or block),
            `state`, `memory`, `chunk`, `mean` or `captured` (inputs of a loop), or `result`.
        output: The names and types of the values that the box computes.
        notes: Lines below the title.
        details: Lines that are shown on hover: the statics with their defaults, and exact costs.
        location: `file:line`, or `line …` of a program that the reader sees.
        source: The text of that line.
        badge: A number that all boxes with the same weights share, or 0 if no other box has these weights.
        boxes: In the order of computation.
        repeats: An earlier box shows the same content.
        change: `new`, `gone` or `changed` in a picture of two architectures."""

    id: str
    kind: str
    title: str
    output: str = ""
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    location: str = ""
    source: str = ""
    badge: int = 0
    boxes: tuple[Box, ...] = ()
    edges: tuple[Edge, ...] = ()
    repeats: bool = False
    change: str = ""

    def walk(self) -> Iterator[Box]:
        """Yields this box and all boxes inside it, parents before children."""
        yield self
        for box in self.boxes:
            yield from box.walk()

    def without_repeats(self) -> Box:
        """Returns the box for a picture that does not fold: of boxes with the same content, only the first shows it."""
        if self.repeats:
            notes = (*self.notes, f"contains what the first {self.title} contains")
            return replace(self, notes=notes, boxes=(), edges=())
        return replace(self, boxes=tuple(box.without_repeats() for box in self.boxes))


# In pixels.
CHARACTER_WIDTH = 7.3  # of a monospaced font of 12 px
LINE_HEIGHT = 15.0
PADDING = 8.0
_OUTPUT = " → "


@dataclass(frozen=True)
class TextLine:
    """A line of text. `kind` is `title` or `note`; `output` follows a title."""

    kind: str
    text: str
    output: str = ""


@dataclass(frozen=True)
class BoxLabel:
    """The text of a box and the size in pixels that it needs with its padding."""

    lines: tuple[TextLine, ...]

    @property
    def width(self) -> float:
        return max(len(line.text + line.output) for line in self.lines) * CHARACTER_WIDTH + 2 * PADDING

    @property
    def height(self) -> float:
        return len(self.lines) * LINE_HEIGHT + 2 * PADDING

    @staticmethod
    def of(box: Box) -> BoxLabel:
        title = f"{box.title}  ≡{box.badge}" if box.badge else box.title
        output = f"{_OUTPUT}{box.output}" if box.output else ""
        return BoxLabel((TextLine("title", title, output), *(TextLine("note", note) for note in box.notes)))


def label_text(box: Box) -> list[str]:
    """Returns the lines of a box without their kinds."""
    return [visible(line.text + line.output) for line in BoxLabel.of(box).lines]
