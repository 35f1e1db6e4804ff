"""`archlang optimizers`: lists and documents the optimizers and the training settings."""

from typing import Annotated

import typer

from archlang.cli import completion


def optimizers(
    name: Annotated[
        str | None,
        typer.Argument(
            help="The name of an optimizer. Without a name, list all.", autocompletion=completion.optimizers
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the optimizers, or print one: its statics, the training settings, their defaults and bounds.

    Example: archlang optimizers adamw
    """
    from archlang.cli.signatures import list_or_show
    from archlang.names import library

    list_or_show("optimizer", library.optimizers(), name, as_json)
