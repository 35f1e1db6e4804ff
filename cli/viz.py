"""`archlang viz`: a picture of an architecture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console

KINDS = (".html", ".svg", ".png", ".dot", ".mmd")


def viz(
    file: Annotated[Path, typer.Argument(help="The program.", show_default=False)],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to: .html, .svg, .png, .dot or .mmd.", show_default=False)
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, as in `model.d=128`.")] = None,
) -> None:
    """Draw an architecture as it is written: blocks open, loops are one box, shared weights carry one badge.

    Without `--out` it is printed as a tree.

    Example: archlang viz recipes/gutlb.arch -o gutlb.html
    """
    from archlang.cli.settings import parse_sets
    from archlang.pages.pictures.architecture import read
    from archlang.pages.pictures.formats import write_picture
    from archlang.pages.pictures.text_tree import print_tree

    if out is not None and out.suffix not in KINDS:
        console.fail(f"`{out}` does not say what kind of picture it is", f"end it in one of {', '.join(KINDS)}", code=2)
    drawn = read(file, model, recipe, parse_sets(sets)).picture()
    if out is None:
        print(print_tree(drawn), end="")
        return
    write_picture(drawn, out)
    print(out)
