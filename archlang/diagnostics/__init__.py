"""Mistakes as data, and their rendering."""

from archlang.diagnostics.diagnostic import ArchlangError, Diagnostic, Label, ProgramError

__all__ = ["ArchlangError", "Diagnostic", "Label", "ProgramError"]
