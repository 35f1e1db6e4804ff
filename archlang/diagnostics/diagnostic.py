"""A mistake as data: what is wrong, where, and what to write instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from archlang.source import Span


@dataclass(frozen=True)
class Label:
    """Another place that matters to a mistake, with what is to be seen there."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One mistake: a stable code (`E0203`; `W…` for a warning), a sentence of what is wrong, the place with the few
    words written under it, every other place that matters, and a sentence of what to write instead."""

    code: str
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    remedy: str = ""

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")


# What a phase calls for each mistake that it finds.
Report = Callable[[Diagnostic], None]


class ArchlangError(Exception):
    """Everything that archlang raises for a mistake of its user."""


class ProgramError(ArchlangError):
    """A program has mistakes; `diagnostics` holds them all."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{d.span}: {d.code}: {d.message}" for d in self.diagnostics))
