"""Diagnostics about the number of diagnostics."""

from dataclasses import replace

from archlang.diagnostics.diagnostic import Diagnostic
from archlang.source import Span


def too_many_errors(span: Span, limit: int) -> Diagnostic:
    message = f"there are more than {limit} errors; only the first {limit} are shown"
    return Diagnostic("E0115", message, span, "the next error is here", remedy="correct these, then check again")


def too_many_warnings(span: Span, count: int, limit: int) -> Diagnostic:
    message = f"there are {count} warnings; only the first {limit} are shown"
    return Diagnostic("W0203", message, span, "the next warning is here", remedy="correct these, then check again")


def at_other_points(diagnostic: Diagnostic, count: int) -> Diagnostic:
    """Returns a diagnostic that says how many other points have the mistake, with other values."""
    others = "another point has this error" if count == 1 else f"{count} other points have this error"
    return replace(diagnostic, remedy=f"{diagnostic.remedy}; {others} with other values")
