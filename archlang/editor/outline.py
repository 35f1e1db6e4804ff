"""The outline of a program: its items and their parts, and the lines that an editor can fold."""

from dataclasses import dataclass
from functools import partial

from archlang.editor.document import Document
from archlang.errors import Span
from archlang.errors.effort import memoized
from archlang.resolve.resolve import Item
from archlang.syntax.tree import Definition, Extern, StaticParameter, Use, walk


@dataclass(frozen=True)
class OutlineEntry:
    """An item, with the place of all of it and that of its name. `kind` is its keyword, or `static`."""

    kind: str
    name: str
    span: Span
    name_span: Span
    inner: tuple["OutlineEntry", ...] = ()


def outline(document: Document) -> tuple[OutlineEntry, ...]:
    """Returns the items of a program in order; blocks and models contain their statics."""
    entries = []
    for item in document.program.items:
        if isinstance(item, Use):
            continue
        statics: tuple[StaticParameter, ...] = ()
        kind = type(item).__name__.lower()
        if isinstance(item, Definition | Extern):
            statics, kind = item.signature.statics, item.word
        inner = tuple(OutlineEntry("static", static.name, static.span, static.span) for static in statics)
        entries.append(OutlineEntry(kind, item.name, item.span, item.name_span, inner))
    return tuple(entries)


def folds(document: Document) -> tuple[tuple[int, int], ...]:
    """Returns the first and the last line, counted from 0, of each item and loop of several lines."""
    lines: set[tuple[int, int]] = set()
    for item in document.program.items:
        line = item.span.line - 1
        of_item = memoized(("folds", item.span.text), partial(_folds_within, item))
        lines |= {(first + line, last + line) for first, last in of_item}
    return tuple(sorted(lines))


def _folds_within(item: Item | Use) -> set[tuple[int, int]]:
    spans = [node.span for node in walk(item) if node is item or hasattr(node, "body")]
    lines = {(span.line - item.span.line, span.source.position(span.end)[0] - item.span.line) for span in spans}
    return {(first, last) for first, last in lines if last > first}
