"""What commands share: the argument FILE, `--set path=value`, `--allow FOLDER`, `--plugin FILE.py` and `--for TIME`."""

import re
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.shipped import program_or_input

ProgramOrInput = Annotated[
    Path,
    typer.Argument(
        help="The program; `-` for standard input.", show_default=False, callback=program_or_input,
        autocompletion=completion.programs,
    ),
]  # fmt: skip

Allow = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow", help="A folder outside of the program's whose files it may read; may be repeated.",
        exists=True, file_okay=False,
    ),
]  # fmt: skip

Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", help="A Python file of your own to run, as with blocks or tasks: read it first; may be repeated.",
    ),
]  # fmt: skip


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def _duration(text: str | None) -> str | None:
    if text is not None and not re.fullmatch(r"[0-9]+(\.[0-9]+)?[smhd]", text):
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 30m, 8h or 2d")
    return text


TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="TIME", help="Stop after this time, as in `30m`, so that a rerun resumes.", callback=_duration
    ),
]


def deadline_of(time_limit: str | None) -> float | None:
    """Returns when a time such as `30m` is over if it begins now, in seconds since 1970; None without one."""
    return None if time_limit is None else time.time() + float(time_limit[:-1]) * _UNITS[time_limit[-1]]


def parse_sets(sets: Iterable[str] | None) -> dict[str, str]:
    """Returns the settings by dotted path, with values as text."""
    settings: dict[str, str] = {}
    for text in sets or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            console.fail(f"`--set {text}` is not of the form path=value", "write `--set model.d=128`", code=2)
        settings[name.strip()] = value.strip()
    return settings
