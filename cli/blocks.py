"""`archlang blocks`: lists and documents the blocks of the library."""

from typing import Annotated

import typer

from archlang.cli import completion


def blocks(
    name: Annotated[
        str | None,
        typer.Argument(help="The name of a block. Without a name, list all.", autocompletion=completion.blocks),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the blocks of the library, or print one with signature, equations, defaults and source.

    Example: archlang blocks geometric_attention
    """
    from archlang.cli.signatures import list_or_show
    from archlang.names import library

    list_or_show("block", library.blocks(), name, as_json)
