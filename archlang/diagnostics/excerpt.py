"""The lines of a source that a mistake points at, with the places marked under them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unicodedata import combining, east_asian_width

from archlang.source import Source, Span

# A longer line is shown around each of its marks only.
_WIDEST = 120
_BEFORE = 40
_TAB = "    "
# Of a place that covers more lines than this, only the first and the last are shown.
_MOST_LINES = 4

# A piece of text with the name of its style.
Piece = tuple[str, str]


@dataclass(frozen=True)
class Mark:
    """A place with the few words written under it; the style also says what it is underlined with."""

    span: Span
    text: str
    style: str


@dataclass(frozen=True)
class _Row:
    """What is underlined on one line, from a column (from 0) to another (excluded)."""

    start: int
    stop: int
    text: str
    style: str


def excerpts(marks: Sequence[Mark]) -> Iterator[Piece]:
    """For each file its lines in order, the file of the first mark first."""
    sources: dict[int, tuple[Source, list[Mark]]] = {}
    for mark in marks:
        sources.setdefault(id(mark.span.source), (mark.span.source, []))[1].append(mark)
    for source, own in sources.values():
        yield from _excerpt(source, own)


def _excerpt(source: Source, marks: Sequence[Mark]) -> Iterator[Piece]:
    lines: dict[int, list[_Row]] = {}
    for mark in marks:
        _add(mark, lines)
    margin = " " * len(str(max(lines)))
    yield f"{margin}--> ", "place"
    if not source.text:
        # The file itself is the matter: it could not be read.
        yield f"{visible(source.path)}\n", ""
        return
    yield f"{visible(str(marks[0].span))}\n", ""
    before = None
    for number in sorted(lines):
        if before is not None and number > before + 1:
            yield "...\n", "place"
        before = number
        yield from _line(source.line(number), f"{number:{len(margin)}}", lines[number])


def _add(mark: Mark, lines: dict[int, list[_Row]]) -> None:
    source, first, start = mark.span.source, mark.span.line, mark.span.column - 1
    last, stop = source.position(max(mark.span.end - 1, mark.span.start))
    if first == last:
        # A place without width is between two characters; the next one is marked.
        lines.setdefault(first, []).append(_Row(start, max(stop, start + 1), mark.text, mark.style))
        return
    lines.setdefault(first, []).append(_Row(start, max(len(source.line(first)), start + 1), "", mark.style))
    if last - first < _MOST_LINES:
        for number in range(first + 1, last):
            lines.setdefault(number, [])
    line = source.line(last)
    indent = len(line) - len(line.lstrip())
    lines.setdefault(last, []).append(_Row(min(indent, stop - 1), stop, mark.text, mark.style))


def _line(line: str, number: str, rows: Sequence[_Row]) -> Iterator[Piece]:
    if len(line) <= _WIDEST:
        yield from _numbered(line, number)
        for row in rows:
            yield from _underline(line, number, row)
        return
    for row in rows or [_Row(0, 1, "", "")]:
        first = max(row.start - _BEFORE, 0)
        part = line[first : first + _WIDEST]
        head, tail = "…" * (first > 0), "…" * (first + _WIDEST < len(line))
        shown = head + part + tail
        shift = len(head) - first
        yield from _numbered(shown, number)
        if row.style:
            stop = max(min(row.stop, first + len(part)), row.start + 1)
            yield from _underline(shown, number, _Row(row.start + shift, stop + shift, row.text, row.style))


def _numbered(line: str, number: str) -> Iterator[Piece]:
    yield f"{number} | ", "place"
    yield f"{visible(line)}\n", ""


def _underline(line: str, number: str, row: _Row) -> Iterator[Piece]:
    yield f"{' ' * len(number)} | ", "place"
    sign = "^" if row.style == "mark" else "-"
    under = sign * max(_width(line[row.start : row.stop]), 1)
    yield f"{' ' * _width(line[: row.start])}{under}", row.style
    yield (f" {visible(row.text)}\n" if row.text else "\n"), row.style


def visible(text: str) -> str:
    """Text as a terminal can show it: no tabs, nothing that moves the cursor or turns the direction of writing."""
    text = text.replace("\t", _TAB)
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def _width(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in visible(text))
