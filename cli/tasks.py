"""`archlang tasks`: what models can be trained on."""

from __future__ import annotations

from typing import Annotated

import typer


def tasks(
    name: Annotated[str | None, typer.Argument(help="A task; without one, all are listed.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the tasks, or print one: its statics, fields, splits and source.

    Example: archlang tasks ctl
    """
    from archlang.cli.signatures import list_or_show
    from archlang.names import library

    list_or_show("task", library.tasks(), name, as_json)
