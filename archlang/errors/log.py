"""Collects the diagnostics of one program: each once, in order, up to a limit."""

from collections.abc import Iterable
from dataclasses import replace

from archlang.errors.diagnostic import Diagnostic, ProgramError
from archlang.errors.source import Span

# The largest number of errors, and of warnings, that are shown.
MOST_ERRORS = 100
MOST_WARNINGS = 100


class DiagnosticLog:
    """Collects diagnostics, each once, even if the block that contains a mistake is checked several times."""

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str, int, str], Diagnostic] = {}
        self._warnings: dict[tuple[str, str, int, str], Diagnostic] = {}
        self._reported_places: set[tuple[str, str, int, int]] = set()
        self._points: dict[_Kind, set[str]] | None = None  # the messages of all points, by the kind of their mistake

    def settle(self) -> None:
        """Ends the check of single blocks. Later diagnostics at the place of an error are ignored, because they are the
        same mistake with the sizes of a recipe."""
        self._reported_places = {_place(diagnostic) for diagnostic in self._errors.values()}

    def begin_points(self) -> None:
        """Begins the check of the points of recipes and tables. A mistake that several of them have is reported once,
        with the number of the others."""
        self._points = {_kind(diagnostic): {diagnostic.message} for diagnostic in self._errors.values()}

    def __call__(self, diagnostic: Diagnostic) -> None:
        """Adds a diagnostic.

        Raises:
            ProgramError: there are more than `MOST_ERRORS` errors; the exception has all diagnostics so far."""
        if _place(diagnostic) in self._reported_places:
            return
        span = diagnostic.span
        key = (diagnostic.code, span.source.path, span.start, diagnostic.message)
        if not diagnostic.is_error:
            self._warnings.setdefault(key, diagnostic)
            return
        if self._points is not None:
            messages = self._points.setdefault(_kind(diagnostic), set())
            messages.add(diagnostic.message)
            if len(messages) > 1:
                return
        if len(self._errors) == MOST_ERRORS and key not in self._errors:
            message = f"there are more than {MOST_ERRORS} errors; only the first {MOST_ERRORS} are shown"
            raise ProgramError([*self.sorted(), _excess("E0115", message, span, "the next error is here")])
        self._errors.setdefault(key, diagnostic)

    def add(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Adds several diagnostics."""
        for diagnostic in diagnostics:
            self(diagnostic)

    def has(self, code: str) -> bool:
        """Returns whether an error has this code."""
        return any(diagnostic.code == code for diagnostic in self._errors.values())

    def sorted(self) -> tuple[Diagnostic, ...]:
        """Returns the errors and the first warnings, ordered by place."""
        warnings = _sorted_by_place(self._warnings.values())
        shown = warnings[:MOST_WARNINGS]
        diagnostics = _sorted_by_place([*map(self._with_points, self._errors.values()), *shown])
        if len(warnings) > MOST_WARNINGS:
            message = f"there are {len(warnings)} warnings; only the first {MOST_WARNINGS} are shown"
            diagnostics.append(_excess("W0203", message, warnings[MOST_WARNINGS].span, "the next warning is here"))
        return tuple(diagnostics)

    def _with_points(self, diagnostic: Diagnostic) -> Diagnostic:
        """A mistake with the values of its first point, and the number of its other points."""
        others = len((self._points or {}).get(_kind(diagnostic), ())) - 1
        whole = replace(diagnostic, labels=(*diagnostic.labels, *diagnostic.point), point=())
        if others <= 0:
            return whole
        points = "another point has this error" if others == 1 else f"{others} other points have this error"
        return replace(whole, remedy=f"{whole.remedy}; {points} with other values")

    def stop_at_errors(self) -> None:
        """Ends a phase: raises the errors found so far.

        Raises:
            ProgramError: there are errors."""
        if self._errors:
            raise ProgramError(_sorted_by_place(map(self._with_points, self._errors.values())))


def _excess(code: str, message: str, next_one: Span, label: str) -> Diagnostic:
    return Diagnostic(code, message, next_one, label, remedy="correct these, then check again")


# The code and the place of a mistake, and the places of its labels.
_Kind = tuple[str, str, int, int, tuple[tuple[str, int], ...]]


def _kind(diagnostic: Diagnostic) -> _Kind:
    labels = tuple((label.span.source.path, label.span.start) for label in diagnostic.labels)
    return *_place(diagnostic), labels


def _place(diagnostic: Diagnostic) -> tuple[str, str, int, int]:
    span = diagnostic.span
    return diagnostic.code, span.source.path, span.start, span.end


def _sorted_by_place(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    return sorted(diagnostics, key=lambda d: (d.span.source.path, d.span.start, d.code))
