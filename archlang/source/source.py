"""The text of one program, with the places in it that later stages point at."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Source:
    """One file of text: `path` is how the user named it."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return (0, *(index + 1 for index, character in enumerate(self.text) if character == "\n"))

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column of an offset, both counted from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (from 1), without its line end."""
        start = self._starts[number - 1]
        stop = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:stop].rstrip("\r\n")


@dataclass(frozen=True)
class Span:
    """The characters `start` (included) to `end` (excluded) of a source."""

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

    def to(self, other: Span) -> Span:
        """The span from the start of this one to the end of the other."""
        return Span(self.source, self.start, max(self.end, other.end))

    def __str__(self) -> str:
        return f"{self.source.path}:{self.line}:{self.column}"

    def __repr__(self) -> str:
        return f"Span({self})"
