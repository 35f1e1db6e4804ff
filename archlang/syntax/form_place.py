"""The place of an unexpected token, as the forms around it are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from archlang.diagnostics import Diagnostic, Edit
from archlang.source import Span
from archlang.syntax.expected import Expected
from archlang.syntax.mistakes import unexpected

# A form is short, and a search through a long text takes time quadratic in its length.
LONGEST = 1_000
_BINDERS = frozenset(("`=`", "`<-`"))


@dataclass(frozen=True)
class Place:
    """An unexpected token: its place, the end of the word or sign before it, what was expected, the name before it that
    begins a statement or an item of brackets, and the innermost open bracket."""

    token: Span
    after: int
    expected: Expected
    name: Span | None
    begins_statement: bool
    around: str
    is_in_recipe: bool

    @property
    def text(self) -> str:
        return self.token.source.text

    @property
    def before(self) -> str:
        return self.text[max(0, self.token.start - LONGEST) : self.token.start]

    def span(self, start: int, end: int) -> Span:
        return Span(self.token.source, start, end)

    def mistake(self, message: str, label: str, remedy: str, *edits: Edit, is_safe: bool = False) -> Diagnostic:
        diagnostic = Diagnostic("E0101", message, self.token, label, remedy=remedy)
        return diagnostic.with_edits(*edits, is_safe=is_safe) if edits else diagnostic

    def unexpected(self, remedy: str, *edits: Edit, is_safe: bool = False) -> Diagnostic:
        message, label = unexpected(self.token.text, self.expected)
        return self.mistake(message, label, remedy, *edits, is_safe=is_safe)


Form = Callable[[Place], Diagnostic | None]
"""Returns the diagnostic of a token in a form that the words around it show; None if they do not show it."""


def last_opener(before: str) -> int | None:
    """Returns the place of the last bracket in a text that it does not close."""
    depth = 0
    for place in range(len(before) - 1, -1, -1):
        if before[place] in ")]}":
            depth += 1
        elif before[place] in "([{":
            if depth == 0:
                return place
            depth -= 1
    return None


def are_binders(expected: Expected) -> bool:
    return set(expected.phrases) <= _BINDERS


def with_remedy(diagnostic: Diagnostic, remedy: str, *edits: Edit) -> Diagnostic:
    diagnostic = replace(diagnostic, remedy=remedy)
    return diagnostic.with_edits(*edits) if edits else diagnostic
