"""The text on a box and its size. All formats use the same lines."""

from __future__ import annotations

from dataclasses import dataclass

from archlang.pages.pictures.box import Box

# In pixels.
CHARACTER_WIDTH = 7.3  # of a monospaced font of 12 px
LINE_HEIGHT = 16.0
PADDING = 10.0
VALUE_PADDING = 3.0
LONGEST_SOURCE = 56  # characters


@dataclass(frozen=True)
class TextLine:
    """A line of text. `kind` is `title`, `note` or `source`."""

    kind: str
    text: str


@dataclass(frozen=True)
class BoxLabel:
    """The text of a box and the size in pixels that it needs with its padding."""

    lines: tuple[TextLine, ...]
    padding: float

    @property
    def width(self) -> float:
        return max(len(line.text) for line in self.lines) * CHARACTER_WIDTH + 2 * self.padding

    @property
    def height(self) -> float:
        return len(self.lines) * LINE_HEIGHT + 2 * self.padding

    @staticmethod
    def of(box: Box) -> BoxLabel:
        title = f"{box.title}  ⚭{box.badge}" if box.badge else box.title
        lines = [TextLine("title", title), *(TextLine("note", note) for note in box.notes)]
        if box.kind == "value":
            return BoxLabel(tuple(lines), VALUE_PADDING)
        if box.source:
            truncated = box.source[: LONGEST_SOURCE - 1] + "…" if len(box.source) > LONGEST_SOURCE else box.source
            lines.append(TextLine("source", truncated))
        return BoxLabel(tuple(lines), PADDING)


def label_text(box: Box) -> list[str]:
    """Returns the lines of a box without their kinds."""
    return [line.text for line in BoxLabel.of(box).lines]
