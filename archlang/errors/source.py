"""The text of one program, and spans of it."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property

# The path of a text `name=value` of a command line or of Python.
SETTING = "<setting>"

# As in the grammar, a lone carriage return ends a line.
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Source:
    """The text of one file; `path` is the path as the user wrote it. A text of the command line comes from the user,
    so it may name any file."""

    path: str
    text: str = field(repr=False)
    is_command_line: bool = field(default=False, repr=False)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *(line_end.end() for line_end in _LINE_END.finditer(self.text)))

    def position(self, offset: int) -> tuple[int, int]:
        """Returns the line and the column of an offset, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """Returns a line without its line end; lines are counted from 1."""
        start, end = self.line_bounds(number)
        return self.text[start:end].rstrip("\r\n")

    def line_bounds(self, number: int) -> tuple[int, int]:
        """Returns the offsets of the start of a line and of that of the next one; lines are counted from 1. After the
        last line, both are the end of the text."""
        if number > len(self._starts):
            return len(self.text), len(self.text)
        return self._starts[number - 1], self._starts[number] if number < len(self._starts) else len(self.text)


@dataclass(frozen=True)
class Span:
    """The characters of a source from offset `start` to `end`, which is excluded."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    def contains(self, other: Span) -> bool:
        """Returns whether another span of the same source is within this one."""
        return self.source.path == other.source.path and self.start <= other.start and other.end <= self.end

    def to(self, other: Span) -> Span:
        """Returns the span from the start of this one to the end of `other`."""
        return Span(self.source, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self})"


def on_command_line(text: str) -> Span:
    """Returns the place of a text of the command line, such as the name of a recipe."""
    return Span(Source("<command line>", text, is_command_line=True), 0, len(text))
