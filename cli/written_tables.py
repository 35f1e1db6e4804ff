"""`archlang ablate`, `scale` and `field`: tables that archlang writes, to be edited and run by `archlang table`."""

from __future__ import annotations

import os.path
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from archlang.cli import arguments, console
from archlang.cli.arguments import chosen_seeds, flag, matching, output, program_argument

if TYPE_CHECKING:
    from archlang.plan.table_writer import RecipePage, TableDraft

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
    _write(page, written, out, f'--compare "{page.recipe.name}"', as_json)


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
            callback=matching(r"[1-9]\d*(,[1-9]\d*)*", "a list of positive numbers; write 200,400"),
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
    pairs = [
        (path, [value for value in text.split(",") if value]) for path, _, text in (o.partition("=") for o in over)
    ]
    steps = budgets.split(",") if budgets else []
    for option, listed in (("--over", [path for path, _ in pairs]), *pairs, ("--budgets", steps)):
        if twice := [each for index, each in enumerate(listed) if each in listed[:index]]:
            console.fail(f"`{option}` has `{twice[0]}` twice", "write it once, as in `--over model.d=16,32`", code=2)
    written = scaling(page, dict(pairs), list(map(int, steps)), chosen_seeds(seeds))
    _write(page, written, out, '--fit "FLOPs"', as_json)


def field(
    context: typer.Context,
    add: Annotated[
        Path | None, typer.Option(help="A program with a block of yours, from sequences to sequences.", dir_okay=False)
    ] = None,
    block: Annotated[
        str | None, typer.Option(help="The block, with statics if need be; without it, the last of the program.")
    ] = None,
    whole: Annotated[
        bool, flag("--whole", "The block is all layers of the model, and not a mixer in two layers.")
    ] = False,
) -> None:
    """Show the table of the field: architectures on 15 tasks at one budget. Add yours, train it, and see its place.

    `--add` writes a table `field_NAME.arch` beside your program, in which the number of hidden features gives your row
    as many weights as the others, within 5 %, and trains this row. Without it, nothing runs but the rows of `--run`.
    All other options are those of `archlang table`.

    Example: archlang field --add mine.arch --seeds 1
    """
    from archlang.resolve.library import recipe_files

    file, results = recipe_files()["field/table"], recipe_files()["field/table"].parents[1] / "results/field.jsonl"
    if add is None and (block is not None or whole):
        console.fail("`--block` and `--whole` are about the program of `--add`", "add `--add mine.arch`", code=2)
    words, options = list(context.args), {word.partition("=")[0] for word in context.args}
    if add is not None:
        file, title = _with_row(file, add, block, whole)
        words += ["--only" if "--dry-run" in options else "--run", title.replace("[", "[[]")]
    elif options.isdisjoint(("--run", "--dry-run", "--no-run", "--list")):
        words.append("--no-run")
    if options.isdisjoint(("--out", "-o")):
        words += ["--out", str(Path("runs", "field"))]
    if results.is_file():
        words += ["--also", str(results)]
    elif "--also" not in options:
        console.err.print("the measured results are in the repository only: `--also recipes/results/field.jsonl`")
    assert context.parent is not None
    assert isinstance(context.parent.command, TyperGroup)
    command = context.parent.command.commands["table"]
    with command.make_context("table", [str(file), *words], parent=context.parent) as inner:
        command.invoke(inner)


def _with_row(file: Path, own: Path, block: str | None, whole: bool) -> tuple[Path, str]:
    """Writes the table of a file with a row for a block of one's own beside its program. Returns it, and the title."""
    from archlang.plan.own_row import TOLERANCE, blocks_of, own_row
    from archlang.reports.pages import write_file
    from archlang.syntax.reading import read

    blocks = blocks_of(own)
    title = block or next(reversed(blocks), "")
    if (name := title.partition("[")[0].strip()) not in blocks:
        remedy = f"its blocks are {', '.join(blocks)}" if blocks else "write `block mine(h: seq[n, d]) -> seq[n, d]`"
        console.fail(f"{own} has no block `{name or 'mine'}`", remedy, code=2)
    target = own.with_name(f"field_{name}.arch")
    row = own_row(file, own, title, whole, target)
    if not row.fits:
        remedy = f"`--block '{row.fitting}'` fits" if row.fitting else "change its statics, as in `--block 'mine[8]'`"
        body = row.body.replace("own.", "")
        message = f"a model of the field has {row.expected:,} weights, and with `{body}` {row.weights:,}"
        console.fail(message, f"{remedy}; the numbers may differ by {TOLERANCE:.0%}", code=2)
    written = read(target).text if os.path.lexists(target) else None
    if written is not None and _without_own_row(written) != _without_own_row(row.text):
        console.fail(f"{target} exists and is another table", f"delete it, or run `archlang table {target}`")
    if written != row.text:
        write_file(target, row.text)
        console.err.print(f"wrote {target}: {row.weights:,} weights, the first row of the field has {row.expected:,}")
    return target, title


def _without_own_row(text: str) -> list[str]:
    """The lines of a table of `own_row` without the row, which changes with the block."""
    return [line for line in text.splitlines() if "own." not in line]


def _write(page: RecipePage, written: TableDraft, out: Path | None, option: str, as_json: bool) -> None:
    for line in written.left_out:
        console.err.print(f"left out: {line}")
    if (mistake := page.mistake(written.text)) is not None:
        console.fail(f"the table would have a mistake: {mistake.message}", mistake.remedy or "")
    if out is not None:
        from archlang.reports.pages import write_file

        if os.path.lexists(out):
            console.fail(f"{out} exists", "name another file; nothing was written")
        if page.reads_other_files(written.text, out):
            reason = "its paths of files are relative to its folder"
            console.fail(f"{out} would be another program: {reason}", f"write it beside {page.plan.source.path}")
        write_file(out, written.text)
    if as_json:
        rows = [vars(row) for row in written.rows]
        console.out.write_json({"rows": rows, "left_out": list(written.left_out), "program": written.text})
    elif out is None:
        console.out.write(written.text.removesuffix("\n"))
    else:
        console.out.print(f"wrote {out}, {len(written.rows)} rows\nnext, type\n    archlang table {out} {option}")
