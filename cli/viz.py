"""`archlang viz`: a picture of an architecture."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import Allow, Plugin, ProgramOrInput, parse_sets
from archlang.cli.standard_input import text_or_path


def viz(
    file: ProgramOrInput,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The picture: .html, .svg, .pdf, .png, .dot or .mmd.")
    ] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the file.")] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the file.")] = None,
    sets: Annotated[list[str] | None, typer.Option("--set", help="A static, such as `model.d=128`.")] = None,
    compact: Annotated[
        bool, typer.Option("--compact", help="Fold the blocks of the language, and merge chains of boxes.")
    ] = False,
    plugin: Plugin = None,
    allow: Allow = None,
) -> None:
    """Draw an architecture: blocks show their content, a loop is one box, a badge marks shared weights.

    Without `--out`, print a tree.

    Example: archlang viz recipes/gutlb.arch -o gutlb.html
    """
    from archlang.compile import compile_named
    from archlang.pages.pictures.formats import FORMATS, write_picture
    from archlang.pages.pictures.picture import draw
    from archlang.pages.pictures.text_tree import print_tree
    from archlang.plugins import Plugins

    if out is not None and out.suffix not in FORMATS:
        console.fail(f"`{out}` has no suffix of a picture", f"use one of {', '.join(FORMATS)}", code=2)
    Plugins.read(plugin or ())  # no Python is needed to draw
    picture = draw(compile_named(text_or_path(file), model, recipe, parse_sets(sets), allow or ()))
    if compact:
        picture = picture.compact()
    if out is None:
        console.out.write(print_tree(picture))
        return
    write_picture(picture, out)
    console.out.write(str(out))
