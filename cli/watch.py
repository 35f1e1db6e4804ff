"""`archlang watch`: checks a program each time it is saved."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
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
        checked = _check(file, allow or ())
        _wait_for_change(checked)


def _check(file: Path, allow: Iterable[Path]) -> Mapping[str, str | None]:
    """Prints the mistakes of a program. Returns the checked texts by path, None for files that cannot be read."""
    from archlang.names.resolve import Loader
    from archlang.plan.check import check_with

    loader = Loader(allow)
    diagnostics = check_with(loader, file)
    console.show(diagnostics)
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    result = plural(errors, "error") if errors else "no errors"
    console.out.print(f"{datetime.now():%H:%M:%S}  {file}: {result}", markup=False)
    texts = loader.texts()
    named = (real for real in loader.named_paths().values() if real is not None and real.endswith(".arch"))
    return {path: texts.get(path) for path in (os.path.realpath(file), *named)}


def _wait_for_change(checked: Mapping[str, str | None]) -> None:
    """Waits until a text is another than the checked one, and no file has changed since the look before: editors save
    in several steps, and a program is not checked again when nothing in it has changed."""
    before = None
    settled: Sequence[object] | None = None
    while True:
        states = _states(checked)
        if states == before and states != settled:
            if any(_text(path) != text for path, text in checked.items()):
                return
            settled = states
        before = states
        time.sleep(_SECONDS)


def _text(path: str) -> str | None:
    """Returns the text of a file; None if it cannot be read."""
    from archlang.diagnostics import ProgramError
    from archlang.syntax.reading import read

    try:
        return read(path).text
    except ProgramError:
        return None


def _states(paths: Iterable[str]) -> list[tuple[int, int, int] | None]:
    """Returns what changes when a file is saved; None for a file that cannot be read."""

    def state(path: str) -> tuple[int, int, int] | None:
        try:
            status = os.stat(path)
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size

    return [state(path) for path in paths]
