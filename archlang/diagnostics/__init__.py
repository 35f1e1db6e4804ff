"""Diagnostics and their rendering."""

from archlang.diagnostics.diagnostic import (
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

__all__ = [
    "ArchlangError",
    "Diagnostic",
    "Edit",
    "ErrorWithRemedy",
    "Label",
    "MachineError",
    "ProgramError",
    "Report",
    "ignore",
]
