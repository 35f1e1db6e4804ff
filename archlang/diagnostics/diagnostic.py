"""Diagnostics: mistakes of a program as data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from archlang.source import Span


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
    `labels` are other places that matter, and `remedy` says what to write instead."""

    code: str
    message: str
    span: Span
    label: str = ""
    labels: tuple[Label, ...] = ()
    remedy: str = ""

    @property
    def is_error(self) -> bool:
        return self.code.startswith("E")


# A phase calls this function for each mistake.
Report = Callable[[Diagnostic], None]


class ArchlangError(Exception):
    """The base class of all exceptions that archlang raises for a mistake of the user."""


class ErrorWithRemedy(ArchlangError):
    """An error outside of a program: `message` says what is wrong, `remedy` how to correct it."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message, self.remedy = message, remedy
        super().__init__(message, remedy)  # the arguments as they are, so that other processes can return the error

    def __str__(self) -> str:
        return f"{self.message}: {self.remedy}"


class MachineError(ErrorWithRemedy):
    """An error whose cause is the machine: no memory, a full disk, a missing permission or device. The program and the
    data may be right."""


class ProgramError(ArchlangError):
    """A program has mistakes, which `diagnostics` lists."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__("\n".join(f"{d.span}: {d.code}: {d.message}" for d in self.diagnostics))
