"""A file with everything that it uses, parsed and with its names resolved."""

from pathlib import Path

from archlang.diagnostics.log import DiagnosticLog
from archlang.names.resolve import Loader, ResolvedFile
from archlang.source import Source


def load_file(path: str | Path) -> ResolvedFile:
    """Parses a file and everything that it uses, and resolves their names.

    Raises:
        ProgramError: a file cannot be read, or has mistakes."""
    loader = Loader()
    return _sound(loader.load(path), loader)


def load_text(text: str, path: str) -> ResolvedFile:
    """Resolves a program given as text; `path` names it in diagnostics.

    Raises:
        ProgramError: the program has mistakes."""
    loader = Loader()
    return _sound(loader.load_source(Source(path, text)), loader)


def _sound(resolved: ResolvedFile, loader: Loader) -> ResolvedFile:
    report = DiagnosticLog()
    report.add(loader.diagnostics)
    report.stop_at_errors()
    return resolved
