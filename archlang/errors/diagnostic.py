"""Diagnostics: mistakes of a program as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from string import Formatter
from typing import Generic, Self, TypeVar

from archlang.errors.effort import keep_nothing
from archlang.errors.source import Span

_E = TypeVar("_E", bound="ErrorWithRemedy")


@dataclass(frozen=True)
class Label:
    """Another place that matters to a mistake, with a text to show under it."""

    span: Span
    text: str


@dataclass(frozen=True)
class Edit:
    """A change of a program: the text to write in place of a span."""

    span: Span
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """A mistake of a program.

    `code` is stable (`E0203`; `W…` for a warning), `message` says what is wrong, `label` is shown under `span`,
    `labels` are other places that matter, and `remedy` says what to write instead. Together, the `edits` make that
    change, if a tool can make it; each of the `alternatives` alone makes another change that the remedy names. If
    `is_safe`, hardly another change can be meant, so that nobody need be asked. `point` are the places of the values
    with which a block or model has the mistake, as labels: of a recipe, a row, or one of several values."""

    code: str
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    remedy: str = ""
    edits: tuple[Edit, ...] = ()
    alternatives: tuple[Edit, ...] = ()
    is_safe: bool = False
    point: tuple[Label, ...] = ()

    def __post_init__(self) -> None:
        keep_nothing()  # what has a mistake reports it each time

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")

    @property
    def is_of_syntax(self) -> bool:
        return self.code.startswith("E01")

    @property
    def severity(self) -> str:
        return "error" if self.is_error else "warning"

    def with_edits(self, *edits: Edit | None, is_safe: bool = False) -> Diagnostic:
        """Returns the diagnostic with edits; without any if one is None, or if the text is not that of a file."""
        changes = tuple(edit for edit in edits if edit is not None and not edit.span.source.is_command_line)
        if len(changes) < len(edits):
            return self
        return replace(self, edits=changes, is_safe=is_safe)


# A phase calls this function for each mistake.
Report = Callable[[Diagnostic], None]


def ignore(diagnostic: Diagnostic) -> None:
    """Reports nothing."""


class ArchlangError(Exception):
    """The base class of all exceptions that archlang raises for a mistake of the user."""


class ErrorWithRemedy(ArchlangError):
    """An error outside of a program: `message` says what is wrong, `remedy` how to correct it."""

    @classmethod
    def wording(cls, message: str, remedy: str) -> Wording[Self]:
        """Returns the texts of an error of this class, with a named field for each of its facts."""
        return Wording(cls, message, remedy)

    def __init__(self, message: str, remedy: str) -> None:
        self.message, self.remedy = message, remedy
        super().__init__(message, remedy)  # the arguments as they are, so that other processes can return the error

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


@dataclass(frozen=True)
class Wording(Generic[_E]):
    """The texts of an error. A call with its facts, in the order in which the texts name them, returns the error.
    Several values are listed with commas; `{path.stem}` is an attribute of a fact."""

    kind: type[_E]
    message: str
    remedy: str

    @property
    def facts(self) -> tuple[str, ...]:
        fields = (field for text in (self.message, self.remedy) for _, field, _, _ in Formatter().parse(text))
        return tuple(dict.fromkeys(field.partition(".")[0] for field in fields if field is not None))

    def __call__(self, *facts: object) -> _E:
        texts = (
            ", ".join(map(str, fact)) if isinstance(fact, Iterable) and not isinstance(fact, str) else fact
            for fact in facts
        )
        named = dict(zip(self.facts, texts, strict=True))
        return self.kind(self.message.format(**named), self.remedy.format(**named))


class MachineError(ErrorWithRemedy):
    """An error whose cause is the machine: no memory, a full disk, a missing permission or device. The program and the
    data may be right."""


class ProgramError(ArchlangError):
    """A program has mistakes, which `diagnostics` lists."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{d.span}: {d.code}: {d.message}" for d in self.diagnostics))
