"""Internal errors: bugs of archlang, which end a command or the processing of one of its files, and `archlang bug`."""

import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path

import typer

from archlang.cli import console
from archlang.disk import package
from archlang.disk.mistakes import RefusedFile
from archlang.errors import ArchlangError
from archlang.errors.bugs import REMEDY, keep_bug, kept_bug
from archlang.errors.machine import machine_error
from archlang.plugins import failure_of

# The exit code of a command with a bug of archlang.
BUG = 70


def report_bug(error: BaseException, path: Path | None = None) -> int:
    """Prints and keeps an internal error, and returns its exit code. `path` is the file that causes it."""
    keep_bug(error, [path] if path else [word for word in sys.argv if word.endswith(".arch")])
    prefix = f"{path}: " if path else ""
    console.say(f"{prefix}internal error: {type(error).__name__}: {error}", REMEDY)
    return BUG


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
        except (ArchlangError, RefusedFile, BrokenPipeError, typer.BadParameter, typer.Exit, typer.Abort):
            raise
        except Exception as error:
            is_expected = machine_error(error) is not None or failure_of(error) is not None
            if is_expected or os.environ.get("ARCHLANG_DEBUG"):
                raise
            if path not in self.paths:
                report_bug(error, path)
            self.paths[path] = None

    def exit(self) -> None:
        """Exits with the code of internal errors if there was one."""
        if self.paths:
            raise typer.Exit(BUG)


def versions() -> list[str]:
    """The versions of archlang, torch and Python. Does not import torch."""
    try:
        torch = f"torch {metadata.version('torch')}"
    except metadata.PackageNotFoundError:
        torch = "torch is not installed"
    return [f"archlang {package.VERSION}", torch, f"Python {platform.python_version()}"]


def bug() -> None:
    """Print a report of the last internal error: versions, device, command, program and traceback.

    Read it before you send it: the program and the paths are yours. Nothing is sent by the command.

    Example: archlang bug
    """
    report = kept_bug() or "No internal error is kept in the cache folder."
    console.out.write("\n".join([*versions(), platform.platform(), _device(), "", report]))
    console.err.write("report it as an issue of the repository that your archlang comes from")


def _device() -> str:
    try:
        import torch
    except (ImportError, OSError) as error:
        return f"torch cannot be imported: {error}"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(names) or f"{platform.machine()}, no GPU"
