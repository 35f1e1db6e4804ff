"""`archlang watch`: checks a program each time it is saved."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Allow
from archlang.cli.shipped import program
from archlang.diagnostics.names import plural

_SECONDS = 0.2
"""between two looks at the files"""


def watch(
    file: Annotated[
        Path,
        typer.Argument(help="The program.", show_default=False, callback=program, autocompletion=completion.programs),
    ],
    allow: Allow = None,
) -> None:
    """Check a program now, and again whenever it or a file that it uses is saved. Ctrl-C ends it.

    Example: archlang watch recipes/gutlb.arch
    """
    while True:
        paths = _paths(file, allow or ())
        # Before the check, so that a save during the check counts.
        before = _states(paths)
        _check(file, allow or ())
        while _states(paths) == before:
            time.sleep(_SECONDS)


def _paths(file: Path, allow: Iterable[Path]) -> list[str]:
    """Returns the paths of a program and of the files that it uses."""
    from archlang.diagnostics import ProgramError
    from archlang.names.resolve import Loader

    try:
        return [source.path for source in Loader(allow).load(file).sources]
    except ProgramError:
        return [str(file)]


def _check(file: Path, allow: Iterable[Path]) -> None:
    """Prints the mistakes of a program."""
    from archlang.plan.check import check

    diagnostics = check(file, allow)
    console.show(diagnostics)
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    result = plural(errors, "error") if errors else "no errors"
    console.out.print(f"{datetime.now():%H:%M:%S}  {file}: {result}", markup=False)


def _states(paths: Iterable[str]) -> list[tuple[int, int, int] | None]:
    """Returns what changes when a file is saved; None for a file that cannot be read."""

    def state(path: str) -> tuple[int, int, int] | None:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    return [state(path) for path in paths]
