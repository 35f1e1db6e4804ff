"""`archlang ablate`, `scale` and `field`: tables that archlang writes, to be edited and run by `archlang table`."""

from __future__ import annotations

import glob
import os.path
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from archlang.cli import arguments, console
from archlang.cli.arguments import chosen_seeds, flag, matching, output, program_argument

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


_TOLERANCE = 0.05


def field(
    context: typer.Context,
    add: Annotated[
        Path | None,
        typer.Option(help="A program with a block of yours, from `seq[n, d]` to `seq[n, d]`.", dir_okay=False),
    ] = None,
    block: Annotated[
        str | None, typer.Option(help="The block, as in `mine[heads = 2]`; without it, the last of the program.")
    ] = None,
    whole: Annotated[
        bool, flag("--whole", "The block is all layers of the model, and not a mixer in two layers.")
    ] = False,
) -> None:
    """Show the table of the field: architectures on ten tasks at one budget. Add yours, train it, and see its place.

    `--add` writes a table `field_NAME.arch` beside your program, in which the number of hidden features gives your row
    as many weights as the others, within 5 %, and trains this row. Without it, nothing runs but the rows of `--run`.
    All other options are those of `archlang table`.

    Example: archlang field --add mine.arch --seeds 1
    """
    from archlang.resolve.library import recipe_files

    file, results = recipe_files()["field/table"], recipe_files()["field/table"].parents[1] / "results/field/runs"
    arguments, given = list(context.args), {argument.partition("=")[0] for argument in context.args}
    if add is not None:
        file, title = _with_row(file, add, block, whole)
        arguments += ["--only" if "--dry-run" in given else "--run", glob.escape(title)]
    elif given.isdisjoint(("--run", "--dry-run", "--no-run", "--list")):
        arguments.append("--no-run")
    if given.isdisjoint(("--out", "-o")):
        arguments += ["--out", str(Path("runs", "field"))]
    if results.is_dir():
        arguments += ["--also", str(results)]
    assert context.parent is not None
    assert isinstance(context.parent.command, TyperGroup)
    command = context.parent.command.commands["table"]
    with command.make_context("table", [str(file), *arguments], parent=context.parent) as inner:
        command.invoke(inner)


def _with_row(file: Path, own: Path, block: str | None, whole: bool) -> tuple[Path, str]:
    """Writes the table of a file with a row for a block of one's own beside its program. Returns it, and the title."""
    from archlang.elaborate.signature_check import load_file
    from archlang.errors import Source
    from archlang.errors.edits import apply_edits, insertion, used
    from archlang.graph.summary import summarize
    from archlang.plan.from_file import plan_first_point
    from archlang.reports.pages import write_file
    from archlang.resolve.library import program_text

    declared = {name: each for name, each in load_file(own).own.items() if each.item.word == "block"}
    title = block or next(reversed(declared), "")
    if (name := title.partition("[")[0].strip()) not in declared:
        console.fail(f"{own} has no block `{name}`", f"its blocks are {', '.join(declared) or 'none'}", code=2)
    target = own.with_name(f"field_{name}.arch")
    source = Source(str(target), program_text(file))
    source = Source(str(target), apply_edits(source.text, [used(source, f'"./{own.name}" as own')]))

    def weights(body: str) -> int:
        plan = plan_first_point(load_file(source), "s3", {"model.body": body} if body else {})
        return summarize(plan.graph, 1).unique

    def body_of(text: str, ff: int) -> str:
        return f"own.{text}" if whole else f"layers[own.{text}, {ff}]"

    expected, ff = weights(""), 4
    if not whole:
        least = weights(body_of(title, 4))
        ff = max(4, 4 + 4 * round((expected - least) / (weights(body_of(title, 8)) - least)))
    body = body_of(title, ff)
    if abs((count := weights(body)) / expected - 1) > _TOLERANCE:
        statics = [each.name for each in declared[name].item.signature.statics if each.kind in (None, "int")]
        fitting = _fitting(title, statics, lambda text: abs(weights(body_of(text, ff)) / expected - 1) <= _TOLERANCE)
        remedy = f"`--block '{fitting}'` fits" if fitting else "change its statics, as in `--block 'mine[width = 16]'`"
        message = f"a model of the field has {expected:,} weights, and with `{body.replace('own.', '')}` {count:,}"
        console.fail(message, f"{remedy}; the numbers may differ by {_TOLERANCE:.0%}", code=2)
    row = next(iter(load_file(source).tables["field"].parts)).span
    text = apply_edits(source.text, [insertion(source, row.start, f'row    "{title}" at model.body = {body}\n    ')])
    if not os.path.lexists(target) or target.read_text(encoding="utf-8") != text:
        if os.path.lexists(target):
            console.fail(f"{target} exists and is another table", f"delete it, or run `archlang table {target}`")
        write_file(target, text)
        console.err.print(f"wrote {target}: {count:,} weights, the first row of the field has {expected:,}")
    return target, title


def _fitting(call: str, statics: list[str], fits: Callable[[str], bool]) -> str | None:
    """Returns a call of a block with another value of one of its statics, with which it fits; None if none is found."""
    from archlang.errors import ProgramError, Source, Span
    from archlang.errors.edits import apply_edits, static_set

    for static, value in product(statics, (1, 2, 3, *range(4, 132, 4), *range(144, 513, 16))):
        edit = static_set(Span(Source("", call), 0, len(call)), static, str(value))
        text = call if edit is None else apply_edits(call, [edit])
        with suppress(ProgramError):
            if fits(text):
                return text
    return None


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
