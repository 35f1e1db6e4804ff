"""Diagnostics and their rendering."""

from archlang.diagnostics.diagnostic import ArchlangError, Diagnostic, Label, ProgramError, Report

__all__ = ["ArchlangError", "Diagnostic", "Label", "ProgramError", "Report"]
