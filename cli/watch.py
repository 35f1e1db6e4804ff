"""`archlang watch`: checks a program each time it is saved."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Allow
from archlang.cli.shipped import program
from archlang.diagnostics.names import plural

_SECONDS = 0.1
"""between two looks at the files; a file that stays the same for two looks is checked"""


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
    if file.is_dir():
        console.fail(f"`{file}` is a folder", "name a program: each command watches one, and the files that it uses", 2)
    checked: Mapping[str, _CheckedFile] = {}
    if not os.path.lexists(file):
        _check(file, allow or (), checked)
        raise typer.Exit(1)  # hardly a program that is not written yet
    while True:
        checked = _check(file, allow or (), checked)
        _wait_for_change(checked)


@dataclass(frozen=True)
class _CheckedFile:
    """What a check has found at a path.

    Attributes:
        text: None for a file that cannot be read, or that the program may not name.
        state: What `_state` has returned before the file was read."""

    may_be_read: bool
    text: str | None
    state: tuple[object, ...]


def _check(file: Path, allow: Iterable[Path], before: Mapping[str, _CheckedFile]) -> Mapping[str, _CheckedFile]:
    """Prints the mistakes of a program. Returns what is at the paths of the program and of the files that it names.
    `before` is the result of the check before."""
    from archlang.names.resolve import Loader
    from archlang.plan.check import check_with

    states = {str(file): _state(str(file), True)}
    states |= {path: _state(path, each.may_be_read) for path, each in before.items()}
    loader = Loader(allow)
    diagnostics = check_with(loader, file)
    console.show(diagnostics)
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    result = plural(errors, "error") if errors else "no errors"
    console.out.print(f"{datetime.now():%H:%M:%S}  {file}: {result}", markup=False)
    texts = loader.texts()
    checked = {}
    for path, real in {**loader.named_paths(), str(file): os.path.realpath(file)}.items():
        may_be_read = path == str(file) or (real is not None and real.endswith(".arch"))
        state = states.get(path) or _state(path, may_be_read)
        checked[path] = _CheckedFile(may_be_read, texts.get(real or ""), state)
    return checked


def _wait_for_change(checked: Mapping[str, _CheckedFile]) -> None:
    """Waits until a file is another than the checked one, and no file has changed since the look before: editors save
    in several steps, and a program is not checked again when nothing in it has changed."""
    before: object = None
    settled: object = None
    while True:
        states = {path: _state(path, each.may_be_read) for path, each in checked.items()}
        if states == before and states != settled:
            if any(_has_changed(path, states[path], each) for path, each in checked.items()):
                return
            settled = states
        before = states
        time.sleep(_SECONDS)


def _has_changed(path: str, state: tuple[object, ...], checked: _CheckedFile) -> bool:
    """Whether a file is another than the checked one; one without a text is if it has been saved, because its mistake
    may be another."""
    if not checked.may_be_read or state[0] != checked.state[0]:
        return state != checked.state
    text = _text(path)
    return text != checked.text or (text is None and state != checked.state)


def _text(path: str) -> str | None:
    """Returns the text of a file; None if it cannot be read."""
    from archlang.diagnostics import ProgramError
    from archlang.syntax.reading import read

    try:
        return read(path).text
    except ProgramError:
        return None


def _state(path: str, may_be_read: bool) -> tuple[object, ...]:
    """Returns what changes when a file is saved or replaced: where its links lead, and its status."""
    try:
        real = os.path.realpath(path)
    except ValueError:  # no file can have this name
        return (path,)
    if not may_be_read:
        return (real,)
    try:
        status = os.stat(path)
    except OSError as error:
        return real, error.errno
    identity = (real, status.st_dev, status.st_ino, status.st_mode)
    # The times of a folder or a pipe change while it is used.
    is_file = stat.S_ISREG(status.st_mode)
    return (*identity, status.st_mtime_ns, status.st_ctime_ns, status.st_size) if is_file else identity
