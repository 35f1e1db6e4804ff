"""The wording of mistakes in the text itself: characters, brackets, and words in the wrong place."""

from __future__ import annotations

from archlang.diagnostics import Diagnostic
from archlang.source import Span


def number_out_of_range(span: Span) -> Diagnostic:
    return Diagnostic("E0107", "number out of range", span)
