"""Internal errors: bugs of archlang, which end a command, or the processing of one of its files."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import typer

from archlang.cli import console
from archlang.diagnostics import ArchlangError
from archlang.diagnostics.bugs import REMEDY, keep_bug
from archlang.diagnostics.machine import machine_error
from archlang.files.mistakes import RefusedFile
from archlang.plugins import failure_of

# The exit code of a command with a bug of archlang.
BUG = 70


def report_bug(error: BaseException, path: Path | None = None) -> int:
    """Prints and keeps an internal error, and returns its exit code. `path` is the file that causes it."""
    keep_bug(error, [path] if path else [word for word in sys.argv if word.endswith(".arch")])
    prefix = f"{path}: " if path else ""
    console.say(f"{prefix}internal error: {type(error).__name__}: {error}", REMEDY)
    return BUG


def is_bug(error: Exception) -> bool:
    """Whether an exception is a bug of archlang: neither a mistake of the user or of a plugin, nor a failure of the
    machine, nor the end of the command."""
    expected = (ArchlangError, RefusedFile, BrokenPipeError, typer.BadParameter, typer.Exit, typer.Abort)
    return not isinstance(error, expected) and machine_error(error) is None and failure_of(error) is None


@dataclass
class InternalErrors:
    """Reports an internal error with the file that causes it, so that a command can process the other files. `paths`
    are the files with an internal error so far."""

    paths: dict[Path, None] = field(default_factory=dict, init=False)

    @contextmanager
    def reported(self, path: Path) -> Iterator[None]:
        """Reports an internal error of the processing of a file, instead of raising it. Raises all other errors, and,
        with ARCHLANG_DEBUG, internal ones too."""
        try:
            yield
        except Exception as error:
            if os.environ.get("ARCHLANG_DEBUG") or not is_bug(error):
                raise
            if path not in self.paths:
                report_bug(error, path)
            self.paths[path] = None

    def exit(self) -> None:
        """Exits with the code of internal errors if there was one."""
        if self.paths:
            raise typer.Exit(BUG)
