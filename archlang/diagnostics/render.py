"""Renders diagnostics for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from archlang.diagnostics.diagnostic import Diagnostic
from archlang.diagnostics.excerpt import Mark, Piece, excerpts
from archlang.diagnostics.exchange import to_json, to_sarif
from archlang.diagnostics.visible import visible

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["coloured", "plain", "to_json", "to_sarif"]

# Longer messages are cut.
_LONGEST = 1_000
_MOST_LABELS = 20
_STYLES = {"error": "bold red", "warning": "bold yellow", "place": "cyan", "label": "cyan", "help": "green", "": ""}


def plain(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns diagnostics as text without colour, each followed by an empty line."""
    return "".join("".join(text for text, _ in _pieces(diagnostic)) + "\n" for diagnostic in diagnostics)


def coloured(diagnostic: Diagnostic) -> Text:
    """Returns a diagnostic as coloured text for a terminal."""
    # Imported late, because importing rich takes time.
    from rich.text import Text

    styles = {**_STYLES, "mark": _STYLES[_kind(diagnostic)]}
    text = Text()
    for piece, style in _pieces(diagnostic):
        text.append(piece, styles[style])
    return text


def _pieces(diagnostic: Diagnostic) -> Iterator[Piece]:
    kind = _kind(diagnostic)
    yield f"{kind}[{diagnostic.code}]", kind
    yield f": {visible(_shortened(diagnostic.message))}\n", ""
    marks = [Mark(diagnostic.span, diagnostic.label, "mark")]
    marks += [Mark(label.span, _shortened(label.text), "label") for label in diagnostic.labels[:_MOST_LABELS]]
    yield from excerpts(marks)
    if diagnostic.remedy:
        yield "  help", "help"
        yield f": {visible(_shortened(diagnostic.remedy))}\n", ""


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _kind(diagnostic: Diagnostic) -> str:
    return "error" if diagnostic.is_error else "warning"
