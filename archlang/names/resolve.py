"""A file with everything that it uses, parsed and with its names resolved."""

from __future__ import annotations

from pathlib import Path

from archlang.diagnostics.report import Report
from archlang.names.modules import Loader, Module
from archlang.source import Source


def resolve(path: str | Path) -> Module:
    """Parses a file and everything that it uses, and resolves their names.

    Raises:
        ProgramError: a file cannot be read, or has mistakes."""
    loader = Loader()
    return _sound(loader.load(path), loader)


def resolve_text(text: str, path: str) -> Module:
    """Resolves a program given as text; `path` names it in diagnostics.

    Raises:
        ProgramError: the program has mistakes."""
    loader = Loader()
    return _sound(loader.load_source(Source(path, text)), loader)


def _sound(module: Module, loader: Loader) -> Module:
    report = Report()
    report.add(loader.diagnostics)
    report.stop_at_errors()
    return module
