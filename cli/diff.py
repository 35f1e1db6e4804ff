"""`archlang diff`: what changed between two architectures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def diff(
    before: Annotated[Path, typer.Argument(help="A program.", show_default=False)],
    after: Annotated[Path, typer.Argument(help="Another.", show_default=False)],
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the second file.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static of the second, as in `model.d=128`.")
    ] = None,
) -> None:
    """Say what changed from one architecture to another.

    Example: archlang diff recipes/ndr.arch recipes/ndr.arch --recipe baseline
    """
    from archlang.cli.settings import parse_sets
    from archlang.view.difference import differences
    from archlang.view.read import read

    found = differences(read(before, None, None, {}).graph, read(after, None, recipe, parse_sets(sets)).graph)
    print("\n".join(found) if found else "nothing changed")
