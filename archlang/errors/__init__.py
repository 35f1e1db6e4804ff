"""Errors as data: diagnostics, their texts and pages, how they are shown, and the source that they point at."""

from archlang.errors.diagnostic import (
    ArchlangError,
    Diagnostic,
    Edit,
    ErrorWithRemedy,
    Label,
    MachineError,
    ProgramError,
    Report,
    ignore,
)
from archlang.errors.source import Source, Span

__all__ = [
    "ArchlangError",
    "Diagnostic",
    "Edit",
    "ErrorWithRemedy",
    "Label",
    "MachineError",
    "ProgramError",
    "Report",
    "Source",
    "Span",
    "ignore",
]
