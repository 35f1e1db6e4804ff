"""A file whose signatures are sound, so that its recipes and models can be planned."""

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics.log import DiagnosticLog
from archlang.elaborate.signature_check import check_signature
from archlang.names import load
from archlang.names.resolve import ResolvedFile, is_shipped
from archlang.source import Source


def load_file(path: str | Path | Source, allow: Iterable[str | Path] = ()) -> ResolvedFile:
    """Loads a file as `names.load.load_file` does, and checks the signatures of its blocks and models, and of those of
    the user's files that it uses.

    Raises:
        ProgramError: a file cannot be read or has mistakes, or a signature has."""
    resolved = load.load_file(path, allow)
    report = DiagnosticLog()
    for declaration in (*resolved.own.values(), *resolved.used.values()):
        if not is_shipped(declaration.file):
            check_signature(declaration, report)
    report.stop_at_errors()
    return resolved
