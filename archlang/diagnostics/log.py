"""The mistakes of one program: each once, in order, and no more than anybody reads."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.diagnostics import mistakes
from archlang.diagnostics.diagnostic import Diagnostic, ProgramError

# Whoever has more errors than this in one program wants to see the first ones.
MOST_ERRORS = 100
MOST_WARNINGS = 100


class DiagnosticLog:
    """Collects mistakes, each once: a block that is used twice has its mistake once."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str, int, str], Diagnostic] = {}
        self._warnings: dict[tuple[str, str, int, str], Diagnostic] = {}
        self._settled: set[tuple[str, str, int, int]] = set()

    def settle(self) -> None:
        """Ends the check of blocks on their own. What is found later at a place of an error is the same mistake, with
        the sizes of a recipe."""
        self._settled = {_place(diagnostic) for diagnostic in self._errors.values()}

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Adds a mistake.

        Raises:
            ProgramError: it is one error too many; those before it are in the exception."""
        if _place(diagnostic) in self._settled:
            return
        span = diagnostic.span
        key = (diagnostic.code, span.source.path, span.start, diagnostic.message)
        if not diagnostic.is_error:
            self._warnings.setdefault(key, diagnostic)
            return
        if len(self._errors) == MOST_ERRORS and key not in self._errors:
            excess = mistakes.too_many_errors(span, MOST_ERRORS)
            raise ProgramError([*self.sorted(), excess])
        self._errors.setdefault(key, diagnostic)

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        for diagnostic in diagnostics:
            self(diagnostic)

    def has(self, code: str) -> bool:
        return any(diagnostic.code == code for diagnostic in self._errors.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """The errors and the first warnings by their places."""
        warnings = _by_place(self._warnings.values())
        shown = warnings[:MOST_WARNINGS]
        found = _by_place([*self._errors.values(), *shown])
        if len(warnings) > MOST_WARNINGS:
            found.append(mistakes.too_many_warnings(warnings[MOST_WARNINGS].span, len(warnings), MOST_WARNINGS))
        return tuple(found)

    def stop_at_errors(self) -> None:
        """Ends a phase.

        Raises:
            ProgramError: there are errors."""
        if self._errors:
            raise ProgramError(_by_place(self._errors.values()))


def _place(diagnostic: Diagnostic) -> tuple[str, str, int, int]:
    span = diagnostic.span
    return diagnostic.code, span.source.path, span.start, span.end


def _by_place(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda d: (d.span.source.path, d.span.start, d.code))
