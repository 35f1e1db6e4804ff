"""The data of a picture: boxes within boxes, and the edges between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
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

    def compact(self) -> Box:
        """Returns the box for one column of a paper: names without types, statics and costs. An operation that is the
        only one to read another, and reads nothing else, shares its box, if the names fit."""
        edges, boxes = list(self.edges), {box.id: box.compact() for box in self.boxes}
        for box in tuple(boxes.values()):
            box = boxes[box.id]
            readers = [edge for edge in edges if edge.source == box.id]
            after = boxes[readers[0].target] if len(readers) == 1 else box
            title = f"{box.title}, {after.title}"
            is_chain = box.is_step and after.is_step and sum(edge.target == after.id for edge in edges) == 1
            if after is not box and is_chain and len(title) <= _LONGEST_CHAIN:
                boxes[after.id] = replace(after, title=title)
                edges = [replace(edge, target=after.id) if edge.target == box.id else edge for edge in edges]
                edges.remove(readers[0])
                del boxes[box.id]
        title = self.title.partition(":")[0] if self.kind in _INPUTS else self.title
        notes = tuple(note for note in self.notes if note.startswith("halting"))
        return replace(self, title=title, output="", notes=notes, boxes=tuple(boxes.values()), edges=tuple(edges))

    def folded(self, titles: Collection[str]) -> Box:
        """Returns the box without the content of the boxes with these titles."""
        return self._without_content(titles)._with_first_content(set())

    def _without_content(self, titles: Collection[str]) -> Box:
        if self.title in titles:
            return replace(self, boxes=(), edges=(), repeats=False)
        return replace(self, boxes=tuple(box._without_content(titles) for box in self.boxes))

    def _with_first_content(self, shown: set[tuple[str, ...]]) -> Box:
        """Returns the box in which the first of equal boxes has content, which may have been in a folded one."""
        key = self.title, *(line for line in self.details if line.startswith("written: "))
        if self.repeats and key in shown:
            return self
        shown.update({key} if self.boxes else ())
        return replace(self, repeats=False, boxes=tuple(box._with_first_content(shown) for box in self.boxes))

    @property
    def is_step(self) -> bool:
        """Whether the box is an operation without boxes in it."""
        return not self.boxes and self.kind not in (*_INPUTS, "result")


_LONGEST_CHAIN = 28  # characters
_INPUTS = ("input", "state", "memory", "chunk", "position", "before", "captured", "mean", "value")

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
