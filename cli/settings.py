"""The options that commands share: `--set path=value`, `--allow FOLDER` and `--plugin FILE.py`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console

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


def parse_sets(sets: Iterable[str] | None) -> dict[str, str]:
    """Returns the settings by dotted path, with values as text."""
    settings: dict[str, str] = {}
    for text in sets or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            console.fail(f"`--set {text}` is not of the form path=value", "write `--set model.d=128`", code=2)
        settings[name.strip()] = value.strip()
    return settings
