"""Diagnostics and their rendering."""

from archlang.diagnostics.diagnostic import (
    ArchlangError,
    Diagnostic,
    ErrorWithRemedy,
    Label,
    MachineError,
    ProgramError,
    Report,
)

__all__ = ["ArchlangError", "Diagnostic", "ErrorWithRemedy", "Label", "MachineError", "ProgramError", "Report"]
