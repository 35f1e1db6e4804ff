"""Mistakes as people, editors and machines read them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

from archlang.diagnostics.diagnostic import Diagnostic
from archlang.source import Span

if TYPE_CHECKING:
    from rich.text import Text

# A longer line is shown around its span only.
_WIDEST = 120
_TAB = "    "
# A piece of a rendered mistake with the name of its style.
Piece = tuple[str, str]


def plain(diagnostics: Iterable[Diagnostic]) -> str:
    """Mistakes as text without colour, an empty line after each."""
    return "".join("".join(text for text, _ in _pieces(diagnostic)) + "\n" for diagnostic in diagnostics)


def coloured(diagnostic: Diagnostic) -> Text:
    """A mistake as text for a terminal."""
    from rich.text import Text

    styles = {"error": "bold red", "warning": "bold yellow", "place": "cyan", "label": "cyan", "help": "green", "": ""}
    styles["mark"] = styles["error"] if diagnostic.is_error else styles["warning"]
    text = Text()
    for piece, style in _pieces(diagnostic):
        text.append(piece, styles[style])
    return text


def _pieces(diagnostic: Diagnostic) -> Iterator[Piece]:
    kind = "error" if diagnostic.is_error else "warning"
    yield f"{kind}[{diagnostic.code}]", kind
    yield f": {diagnostic.message}\n", ""
    yield from _excerpt(diagnostic.span, diagnostic.label, "mark")
    for label in diagnostic.labels:
        yield from _excerpt(label.span, label.text, "label")
    if diagnostic.remedy:
        yield "  help", "help"
        yield f": {diagnostic.remedy}\n", ""


def _excerpt(span: Span, label: str, style: str) -> Iterator[Piece]:
    """A line of the source with the span underlined and a few words under it."""
    number = span.line
    margin = " " * len(str(number))
    yield f"{margin}--> ", "place"
    yield f"{span}\n", ""
    line = span.source.line(number)
    start = span.column - 1
    # Of a span over several lines, the first is shown.
    stop = min(max(start + span.end - span.start, start + 1), max(len(line), start + 1))
    line, start, stop = _cut(line, start, stop)
    before, marked = _shown(line[:start]), _shown(line[start:stop])
    yield f"{number} | ", "place"
    yield f"{_shown(line)}\n", ""
    yield f"{margin} | ", "place"
    under = "^" if style == "mark" else "-"
    yield " " * _width(before) + under * max(_width(marked), 1), style
    yield (f" {label}\n" if label else "\n"), style


def _cut(line: str, start: int, stop: int) -> tuple[str, int, int]:
    """The part of a long line around a span."""
    if len(line) <= _WIDEST:
        return line, start, stop
    first = max(start - 40, 0)
    last = min(first + _WIDEST, len(line))
    head, tail = "…" * (first > 0), "…" * (last < len(line))
    stop = max(min(stop, last), start + 1)
    shift = len(head) - first
    return head + line[first:last] + tail, start + shift, stop + shift


def _shown(text: str) -> str:
    """Text as a terminal shows it: no tabs, no control characters."""
    text = text.replace("\t", _TAB)
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


def _width(text: str) -> int:
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """A list of objects; lines and columns count from 1, and the end is excluded."""
    found = [
        {
            "code": diagnostic.code,
            "severity": "error" if diagnostic.is_error else "warning",
            "message": diagnostic.message,
            **_place(diagnostic.span),
            "label": diagnostic.label,
            "labels": [{**_place(label.span), "text": label.text} for label in diagnostic.labels],
            "remedy": diagnostic.remedy,
        }
        for diagnostic in diagnostics
    ]
    return json.dumps(found, indent=2, ensure_ascii=False)


def _place(span: Span) -> dict[str, Any]:  # Any: JSON
    end_line, end_column = span.source.position(max(span.end, span.start))
    return {
        "file": span.source.path,
        "line": span.line,
        "column": span.column,
        "end_line": end_line,
        "end_column": end_column,
    }


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """A SARIF 2.1.0 log with one run."""
    from archlang.diagnostics import codes

    found = list(diagnostics)
    titles = codes.titles()
    rules = sorted({diagnostic.code for diagnostic in found})
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "archlang",
                        "rules": [{"id": code, "shortDescription": {"text": titles.get(code, code)}} for code in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [
                    {
                        "ruleId": diagnostic.code,
                        "ruleIndex": rules.index(diagnostic.code),
                        "level": "error" if diagnostic.is_error else "warning",
                        "message": {"text": ". ".join(filter(None, (diagnostic.message, diagnostic.remedy)))},
                        "locations": [_location(diagnostic.span, diagnostic.label)],
                        "relatedLocations": [_location(label.span, label.text) for label in diagnostic.labels],
                    }
                    for diagnostic in found
                ],
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False)


def _location(span: Span, text: str) -> dict[str, Any]:  # Any: JSON
    place = _place(span)
    location: dict[str, Any] = {  # Any: JSON
        "physicalLocation": {
            "artifactLocation": {"uri": place["file"]},
            "region": {
                "startLine": place["line"],
                "startColumn": place["column"],
                "endLine": place["end_line"],
                "endColumn": place["end_column"],
            },
        }
    }
    if text:
        location["message"] = {"text": text}
    return location
