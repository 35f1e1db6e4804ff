"""A file with everything that it uses, parsed and with its names resolved."""

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics.log import DiagnosticLog
from archlang.names.resolve import Loader, ResolvedFile
from archlang.source import Source


def load_file(path: str | Path | Source, allow: Iterable[str | Path] = ()) -> ResolvedFile:
    """Parses a file, or the text of one, and everything that it uses, and resolves their names. It may use files of its
    own folder and below, of the library, and of the folders of `allow`.

    Raises:
        ProgramError: a file cannot be read, or has mistakes."""
    loader = Loader(allow)
    return _sound(loader.load_source(path) if isinstance(path, Source) else loader.load(path), loader)


def load_command_line(text: str) -> ResolvedFile:
    """Resolves a program that the user has written on the command line.

    Raises:
        ProgramError: the program has mistakes."""
    loader = Loader()
    return _sound(loader.load_source(Source("<command line>", text, is_command_line=True)), loader)


def _sound(resolved: ResolvedFile, loader: Loader) -> ResolvedFile:
    report = DiagnosticLog()
    report.add(loader.with_uses(loader.diagnostics))
    report.stop_at_errors()
    return resolved
