"""`archlang diff`: what changed between two architectures."""

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Allow, ProgramOrInput, parse_sets
from archlang.cli.shipped import program_or_input
from archlang.cli.standard_input import STANDARD_INPUT, text_or_path


def diff(
    before: ProgramOrInput,
    after: Annotated[
        Path,
        typer.Argument(
            help="The program to compare it with, or `-`.",
            show_default=False,
            callback=program_or_input,
            autocompletion=completion.programs,
        ),
    ],
    model: Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the second program.")] = None,
    model_before: Annotated[
        str | None, typer.Option("--model-before", help="A model or block of the first program.")
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the second program.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static of the second program, such as `model.d=128`.")
    ] = None,
    allow: Allow = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="A picture of both: .html, .svg, .png, .dot or .mmd.")
    ] = None,
) -> None:
    """Print what changed between two architectures. With `--out`, also draw both side by side.

    The models are those of the first recipes. `--model`, `--recipe` and `--set` apply to the second program.

    Example: archlang diff recipes/ndr.arch recipes/ndr.arch --recipe baseline -o diff.html
    """
    if before == after == STANDARD_INPUT:
        console.fail("both programs are `-`", "name a file for one of them", code=2)
    from archlang.compile import compile_named
    from archlang.pages.pictures.changes import describe_changes

    old = compile_named(text_or_path(before), model_before, None, {}, allow or ())
    new = compile_named(text_or_path(after), model, recipe, parse_sets(sets), allow or ())
    changes = describe_changes(old, new) or ("nothing changed",)
    console.out.write("\n".join(changes))
    if out is not None:
        from archlang.pages.pictures.formats import write_picture
        from archlang.pages.pictures.picture import draw
        from archlang.pages.pictures.side_by_side import side_by_side

        write_picture(side_by_side(draw(old), draw(new), changes), out)
        console.out.write(str(out))
