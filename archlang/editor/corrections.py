"""What corrects the mistakes at a place: the edits of their remedies, with titles."""

from dataclasses import dataclass

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.edits import apply_edits
from archlang.editor.document import Document
from archlang.plan.corrections import correct, is_safe_in

_LONGEST_TITLE = 80


@dataclass(frozen=True)
class Correction:
    """The edits that correct a mistake. `title` says what they do."""

    title: str
    diagnostic: Diagnostic

    @property
    def edits(self) -> tuple[Edit, ...]:
        return self.diagnostic.edits


def corrections(document: Document, start: int = 0, end: int | None = None) -> tuple[Correction, ...]:
    """Returns the corrections of the mistakes that touch a place, of the whole document by default."""
    end = len(document.text) if end is None else end
    return tuple(
        Correction(title(diagnostic), diagnostic)
        for diagnostic in document.diagnostics
        if diagnostic.span.start <= end and start <= diagnostic.span.end and is_correctable(document, diagnostic)
    )


def is_correctable(document: Document, diagnostic: Diagnostic) -> bool:
    """Returns whether a mistake of a document has edits, all of them in the document."""
    places = (diagnostic.span, *(edit.span for edit in diagnostic.edits))
    return bool(diagnostic.edits) and all(place.source.path == document.path for place in places)


def all_corrected(document: Document) -> str | None:
    """Returns the text after all safe corrections; None if there are none."""
    if not any(is_safe_in(diagnostic, document.path) for diagnostic in document.diagnostics):
        return None
    return correct(document.text, document.path, unsaved=document.unsaved).text


def title(diagnostic: Diagnostic) -> str:
    """Returns what the edits of a mistake do, such as ``Replace `nrom` by `norm` ``; empty without edits."""
    if not diagnostic.edits:
        return ""
    first, *others = diagnostic.edits
    before, after = _shown(first.span.text), _shown(first.text)
    if others:
        start, _ = first.span.source.line_bounds(first.span.line)
        _, end = first.span.source.line_bounds(first.span.source.position(others[-1].span.end)[0])
        text = apply_edits(first.span.source.text, diagnostic.edits)
        return f"Change to `{_shown(text[start : end + len(text) - len(first.span.source.text)])}`"
    if not before:
        return f"Insert `{after}`"
    return f"Replace `{before}` by `{after}`" if after else f"Delete `{before}`"


def _shown(text: str) -> str:
    shown = " ".join(text.split())
    return shown if len(shown) <= _LONGEST_TITLE else f"{shown[: _LONGEST_TITLE - 1]}…"
