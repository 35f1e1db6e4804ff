"""Renders diagnostics for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import combining, east_asian_width

from archlang.errors.diagnostic import Diagnostic
from archlang.errors.source import Source, Span
from archlang.errors.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

# Longer messages are cut.
_LONGEST = 1_000
_MOST_LABELS = 20
# Of a longer line, only the text around each mark is shown.
_WIDEST = 120
_BEFORE = 40
# Of a span with more lines, only the first and the last line are shown.
_MOST_LINES = 4

# A piece of text with the name of its style.
_Piece = tuple[str, str]

_STYLES = {"error": "bold red", "warning": "bold yellow", "place": "cyan", "label": "cyan", "help": "green", "": ""}


def plain(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns diagnostics as text without colour, each followed by an empty line."""
    return "".join("".join(text for text, _ in _pieces(diagnostic)) + "\n" for diagnostic in diagnostics)


def coloured(diagnostic: Diagnostic) -> Text:
    """Returns a diagnostic as coloured text for a terminal."""
    # Imported late, because importing rich takes time.
    from rich.text import Text

    styles = {**_STYLES, "mark": _STYLES[diagnostic.severity]}
    text = Text()
    for piece, style in _pieces(diagnostic):
        text.append(piece, styles[style])
    return text


def _pieces(diagnostic: Diagnostic) -> Iterator[_Piece]:
    kind = diagnostic.severity
    yield f"{kind}[{diagnostic.code}]", kind
    yield f": {visible(_shortened(diagnostic.message))}\n", ""
    marks = [_Mark(diagnostic.span, diagnostic.label, "mark")]
    marks += [_Mark(label.span, _shortened(label.text), "label") for label in diagnostic.labels[:_MOST_LABELS]]
    yield from _excerpts(marks)
    if diagnostic.remedy:
        yield "  help", "help"
        yield f": {visible(_shortened(diagnostic.remedy))}\n", ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


@dataclass(frozen=True)
class _Mark:
    """A span with the text under it; the style also selects the underline character."""

    span: Span
    text: str
    style: str


@dataclass(frozen=True)
class _Underline:
    """An underline on one line, from a column (counted from 0) to another (excluded), with a text."""

    start: int
    stop: int
    text: str
    style: str


def _excerpts(marks: Sequence[_Mark]) -> Iterator[_Piece]:
    sources: dict[int, tuple[Source, list[_Mark]]] = {}
    for mark in marks:
        sources.setdefault(id(mark.span.source), (mark.span.source, []))[1].append(mark)
    for source, source_marks in sources.values():
        yield from _excerpt(source, source_marks)


def _excerpt(source: Source, marks: Sequence[_Mark]) -> Iterator[_Piece]:
    lines: dict[int, list[_Underline]] = {}
    for mark in marks:
        _add(mark, lines)
    margin = " " * len(str(max(lines)))
    yield f"{margin}--> ", "place"
    if not source.text:
        # The file could not be read.
        yield f"{visible(source.path)}\n", ""
        return
    yield f"{visible(str(marks[0].span))}\n", ""
    previous = None
    for number in sorted(lines):
        if previous is not None and number > previous + 1:
            yield "...\n", "place"
        previous = number
        yield from _line(source.line(number), f"{number:{len(margin)}}", lines[number])


def _add(mark: _Mark, lines: dict[int, list[_Underline]]) -> None:
    source, first, start = mark.span.source, mark.span.line, mark.span.column - 1
    last, stop = source.position(max(mark.span.end - 1, mark.span.start))
    if first == last:
        # An empty span is marked at the next character.
        lines.setdefault(first, []).append(_Underline(start, max(stop, start + 1), mark.text, mark.style))
        return
    lines.setdefault(first, []).append(_Underline(start, max(len(source.line(first)), start + 1), "", mark.style))
    if last - first < _MOST_LINES:
        for number in range(first + 1, last):
            lines.setdefault(number, [])
    line = source.line(last)
    indent = len(line) - len(line.lstrip())
    lines.setdefault(last, []).append(_Underline(min(indent, stop - 1), stop, mark.text, mark.style))


def _line(line: str, number: str, underlines: Sequence[_Underline]) -> Iterator[_Piece]:
    if len(line) <= _WIDEST:
        yield from _numbered(line, number)
        for underline in underlines:
            yield from _underline(line, number, underline)
        return
    for underline in underlines or [_Underline(0, 1, "", "")]:
        first = max(underline.start - _BEFORE, 0)
        part = line[first : first + _WIDEST]
        head, tail = "…" * (first > 0), "…" * (first + _WIDEST < len(line))
        shown = head + part + tail
        shift = len(head) - first
        yield from _numbered(shown, number)
        if underline.style:
            stop = max(min(underline.stop, first + len(part)), underline.start + 1)
            yield from _underline(
                shown, number, _Underline(underline.start + shift, stop + shift, underline.text, underline.style)
            )


def _numbered(line: str, number: str) -> Iterator[_Piece]:
    yield f"{number} | ", "place"
    yield f"{visible(line)}\n", ""


def _underline(line: str, number: str, underline: _Underline) -> Iterator[_Piece]:
    yield f"{' ' * len(number)} | ", "place"
    sign = "^" if underline.style == "mark" else "-"
    under = sign * max(_width(line[underline.start : underline.stop]), 1)
    yield f"{' ' * _width(line[: underline.start])}{under}", underline.style
    yield (f" {visible(underline.text)}\n" if underline.text else "\n"), underline.style


def _width(text: str) -> int:
    return sum(0 if combining(sign) else 2 if east_asian_width(sign) in "WF" else 1 for sign in visible(text))
