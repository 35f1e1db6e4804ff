"""Internal errors: bugs of archlang, which end a command, and `archlang bug`."""

import platform
import sys
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

from archlang.cli import console
from archlang.disk import package
from archlang.errors.bugs import REMEDY, keep_bug, kept_bug

# The exit code of a command with a bug of archlang.
BUG = 70


_at_work: list[Path] = []


def each(paths: Iterable[Path]) -> Iterator[Path]:
    """Yields the files of a command. An internal error names the one that is at work."""
    for path in paths:
        _at_work[:] = [path]
        yield path
    _at_work.clear()


def report_bug(error: BaseException) -> int:
    """Prints and keeps an internal error, and returns its exit code."""
    keep_bug(error, _at_work or [word for word in sys.argv if word.endswith(".arch")])
    prefix = "".join(f"{path}: " for path in _at_work)
    console.say(f"{prefix}internal error: {type(error).__name__}: {error}", REMEDY)
    return BUG


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
