"""Diagnostics about the number of diagnostics."""

from __future__ import annotations

from archlang.diagnostics.diagnostic import Diagnostic
from archlang.source import Span


def too_many_errors(span: Span, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0115",
        f"there are more than {limit} errors; only the first {limit} are shown",
        span,
        "the next error is here",
        remedy="correct these, then check again",
    )


def too_many_warnings(span: Span, count: int, limit: int) -> Diagnostic:
    return Diagnostic(
        "W0203",
        f"there are {count} warnings; only the first {limit} are shown",
        span,
        "the next warning is here",
        remedy="correct these, then check again",
    )
