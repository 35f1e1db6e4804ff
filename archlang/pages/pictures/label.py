"""The text on a box and its size. All formats use the same lines."""

from __future__ import annotations

from dataclasses import dataclass

from archlang.diagnostics.visible import visible
from archlang.pages.pictures.box import Box

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
