"""`archlang ablate` and `archlang scale`: tables that archlang writes, to be edited and run by `archlang table`."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import chosen_seeds, matching, output, program_argument

if TYPE_CHECKING:
    from archlang.plan.table_writer import TableDraft

_File = Annotated[Path, program_argument("A program with a recipe.")]
_Out = Annotated[Path | None, output("The file to write, `NAME.arch`; without it, print the program.")]


def ablate(
    file: _File,
    recipe: arguments.RecipeName = None,
    seeds: arguments.Seeds = None,
    out: _Out = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Write a table of a recipe in which one part of its model after another is off.

    The parts are the terms of sums (branches), gates, norms, auxiliary losses, and loops, which take one turn. Each has
    a static, such as `with_norm`, that is `true`; the rows set one of them to `false`. Edit the file, then run it.

    Example: archlang ablate recipes/gut.arch
    """
    from archlang.plan.ablation import ablation
    from archlang.plan.table_writer import RecipePage

    console.require_suffix(out, (".arch",), "a program")
    page = RecipePage(file, recipe, allow or ())
    written = ablation(page, chosen_seeds(seeds))
    if len(written.rows) < 2:
        message = f"nothing in the model of `{page.recipe.name}` can be off"
        console.fail(message, "name a recipe whose model has a sum, a norm, a gate or a loop in its text")
    _write(written, out, f'--compare "{page.recipe.name}"', as_json)


def scale(
    file: _File,
    recipe: arguments.RecipeName = None,
    over: Annotated[
        list[str] | None,
        typer.Option(help="A static and its values, as in `model.d=16,32,64`; without them, its half and double."),
    ] = None,
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Numbers of training steps, as in `200,400,800`.",
            callback=matching(r"\d+(,\d+)*", "a list of numbers; write 200,400"),
        ),
    ] = None,
    seeds: arguments.Seeds = None,
    out: _Out = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Write a table of a recipe at several widths, depths or turns, and numbers of training steps.

    Example: archlang scale recipes/gut.arch --over model.d=16,32,64 --budgets 200,600
    """
    from archlang.plan.table_writer import RecipePage, scaling

    console.require_suffix(out, (".arch",), "a program")
    page = RecipePage(file, recipe, allow or ())
    sizes = [path for path, value in page.plan.settings.items() if path.startswith("model.") and type(value) is int]
    if not over:
        console.fail("`--over` names what has several sizes", f"it can be {', '.join(sizes)}", code=2)
    values = {
        path: [value for value in text.split(",") if value] for path, _, text in (each.partition("=") for each in over)
    }
    written = scaling(page, values, list(map(int, (budgets or "").split(",") if budgets else ())), chosen_seeds(seeds))
    _write(written, out, '--fit "FLOPs"', as_json)


def _write(written: TableDraft, out: Path | None, option: str, as_json: bool) -> None:
    for line in written.left_out:
        console.err.print(f"left out: {line}")
    if out is not None:
        from archlang.reports.pages import write_file

        if os.path.lexists(out):
            console.fail(f"{out} exists", "name another file; nothing was written")
        write_file(out, written.text)
    if as_json:
        rows = [vars(row) for row in written.rows]
        console.out.write_json({"rows": rows, "left_out": list(written.left_out), "program": written.text})
    elif out is None:
        console.out.write(written.text.removesuffix("\n"))
    else:
        console.out.print(f"wrote {out}, {len(written.rows)} rows\nnext, type\n    archlang table {out} {option}")
