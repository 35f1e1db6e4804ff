"""Diagnostics as JSON."""

from collections.abc import Iterable
from typing import Any

from archlang.errors.diagnostic import Diagnostic
from archlang.errors.source import Span
from archlang.errors.visible import json_text


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Returns a JSON list with an object for each diagnostic. Its `edits` correct the mistake together: each replaces a
    place by a text. `check --fix` makes those that are `safe`.

    Lines and columns count from 1, offsets from 0. All count characters, and ends are excluded."""
    return json_text(
        [
            {
                "code": diagnostic.code,
                "severity": diagnostic.severity,
                "message": diagnostic.message,
                **_place(diagnostic.span),
                "label": diagnostic.label,
                "labels": [{**_place(label.span), "text": label.text} for label in diagnostic.labels],
                "remedy": diagnostic.remedy,
                "edits": [{**_place(edit.span), "text": edit.text} for edit in diagnostic.edits],
                "safe": diagnostic.is_safe,
            }
            for diagnostic in diagnostics
        ]
    )


def _place(span: Span) -> dict[str, Any]:  # Any: JSON
    end_line, end_column = span.source.position(span.end)
    return {
        "file": span.source.path,
        "line": span.line,
        "column": span.column,
        "end_line": end_line,
        "end_column": end_column,
        "start": span.start,
        "end": span.end,
    }
