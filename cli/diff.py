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
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A picture of both: .html, .svg, .png, .dot or .mmd.")
    ] = None,
) -> None:
    """Say what changed from one architecture to another; with `-o`, in a picture of both.

    The first file's first recipe is compared. `--recipe` and `--set` are for the second file.

    Example: archlang diff recipes/ndr.arch recipes/ndr.arch --recipe baseline -o diff.html
    """
    from archlang.cli.settings import parse_sets
    from archlang.pages.pictures.architecture import read
    from archlang.pages.pictures.changes import differences

    one, other = read(before, None, None, {}), read(after, None, recipe, parse_sets(sets))
    found = differences(one.graph, other.graph) or ("nothing changed",)
    print("\n".join(found))
    if out is not None:
        from archlang.pages.pictures.formats import write_picture
        from archlang.pages.pictures.side_by_side import side_by_side

        write_picture(side_by_side(one.picture(), other.picture(), found), out)
        print(out)
