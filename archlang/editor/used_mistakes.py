"""Mistakes of used files, shown at the `use` lines of a file that uses them."""

import os
from collections.abc import Container, Iterator
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Label
from archlang.editor.document import Document
from archlang.source import Span


def shown_diagnostics(document: Document, open_paths: Container[str]) -> Iterator[Diagnostic]:
    """Yields the diagnostics of a document and of the open files that it uses. Those of other files become one at each
    `use` line that leads to them."""
    by_use: dict[Span, list[Diagnostic]] = {}
    for each in document.diagnostics:
        if os.path.normpath(each.span.source.path) in open_paths:
            yield each
        else:
            by_use.setdefault(_use(document, each), []).append(each)
    for use, mistakes in by_use.items():
        yield _at_use(document, use, sorted(mistakes, key=lambda each: not each.is_error))


def _use(document: Document, diagnostic: Diagnostic) -> Span:
    """Returns the place of a document that leads to a mistake of another file: that of the last label, as `use` lines
    follow the other labels; the start of the document if there is none."""
    labels = [label.span for label in diagnostic.labels if label.span.source.path == document.path]
    return labels[-1] if labels else Span(document.source, 0, 0)


def _at_use(document: Document, use: Span, mistakes: list[Diagnostic]) -> Diagnostic:
    first = mistakes[0]
    file = os.path.relpath(first.span.source.path, os.path.dirname(document.path) or ".")
    message = f"in `{file}`, line {first.span.line}: {first.message}"
    if len(mistakes) > 1:
        message = f"{len(mistakes)} errors of used files, the first {message}"
    labels = tuple(Label(each.span, each.message) for each in mistakes)
    return replace(first, message=message, span=use, label="used here", labels=labels, edits=(), alternatives=())
