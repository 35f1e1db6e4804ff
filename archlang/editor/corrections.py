"""What corrects the mistakes at a place: the edits of their remedies, with titles."""

from collections.abc import Sequence
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.errors import Diagnostic, Edit
from archlang.errors.edits import apply_edits
from archlang.plan.check import correct, is_safe_in

_LONGEST_TITLE = 80


@dataclass(frozen=True)
class CodeAction:
    """The edits that correct a mistake. `title` says what they do."""

    title: str
    diagnostic: Diagnostic
    edits: tuple[Edit, ...]


def corrections(document: Document, start: int = 0, end: int | None = None) -> tuple[CodeAction, ...]:
    """Returns the corrections of the mistakes that touch a place, of the whole document by default."""
    end = len(document.text) if end is None else end
    return tuple(
        correction
        for diagnostic in document.diagnostics
        if diagnostic.span.start <= end and start <= diagnostic.span.end
        for correction in corrections_of(document, diagnostic)
    )


def corrections_of(document: Document, diagnostic: Diagnostic) -> tuple[CodeAction, ...]:
    """Returns the corrections of a mistake of a document, if they change the document alone."""
    places = (diagnostic.span, *(edit.span for edit in diagnostic.edits))
    if not diagnostic.edits or any(place.source.path != document.path for place in places):
        return ()
    changes = [diagnostic.edits, *((edit,) for edit in diagnostic.alternatives)]
    return tuple(CodeAction(title(edits), diagnostic, edits) for edits in changes)


def all_corrected(document: Document) -> str | None:
    """Returns the text after all safe corrections; None if there are none."""
    if not any(is_safe_in(diagnostic, document.path) for diagnostic in document.diagnostics):
        return None
    return correct(document.text, document.path, unsaved=document.unsaved).text


def title(edits: Sequence[Edit]) -> str:
    """Returns what edits do, such as ``Replace `nrom` by `norm` ``."""
    first, *others = sorted(edits, key=lambda edit: edit.span.start)
    before, after = _shown(first.span.text), _shown(first.text)
    if others:
        start, _ = first.span.source.line_bounds(first.span.line)
        _, end = first.span.source.line_bounds(first.span.source.position(others[-1].span.end)[0])
        text = apply_edits(first.span.source.text, edits)
        return f"Change to `{_shown(text[start : end + len(text) - len(first.span.source.text)])}`"
    if not before:
        return f"Insert `{after}`"
    return f"Replace `{before}` by `{after}`" if after else f"Delete `{before}`"


def _shown(text: str) -> str:
    shown = " ".join(text.split())
    shown = "".join(character if character.isprintable() else f"U+{ord(character):04X}" for character in shown)
    return shown if len(shown) <= _LONGEST_TITLE else f"{shown[: _LONGEST_TITLE - 1]}…"
