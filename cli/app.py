"""The subcommands of `archlang`."""

from inspect import getdoc
from typing import Annotated

import typer

from archlang.cli import (
    blocks,
    check,
    console,
    contracts,
    data,
    diff,
    evaluate,
    explain,
    export,
    fmt,
    inspect,
    lsp,
    new,
    optimizers,
    play,
    predict,
    recipes,
    report,
    runs,
    show,
    summary,
    table,
    tasks,
    train,
    tune,
    viz,
    watch,
)
from archlang.source import package

app = typer.Typer(
    name="archlang",
    help="A language in which a neural architecture is a page of text.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("new")(new.new)
app.command("check")(check.check)
app.command("watch")(watch.watch)
app.command("lsp")(lsp.lsp)
app.command("play")(play.play)
app.command("fmt")(fmt.fmt)
app.command("show")(show.show)
app.command("viz")(viz.viz)
app.command("diff")(diff.diff)
app.command("summary")(summary.summary)
app.command("explain")(explain.explain)
app.command("blocks")(blocks.blocks)
app.command("recipes")(recipes.recipes)
app.command("tasks")(tasks.tasks)
app.command("optimizers")(optimizers.optimizers)
app.command("test")(contracts.hold_blocks)
app.command("train")(train.train)
app.command("table")(table.table)
app.command("tune")(tune.tune)
app.command("eval")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("inspect")(inspect.inspect)
app.command("report")(report.report)
app.command("export")(export.export)
app.add_typer(runs.app)
app.add_typer(data.app)


def _join_lines_of_help(app: typer.Typer) -> None:
    """Joins the lines of each paragraph of a command's help: typer would print the line ends of the docstring."""
    for command in app.registered_commands:
        paragraphs = (getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _join_lines_of_help(group.typer_instance)


_join_lines_of_help(app)


def _print_version(requested: bool) -> None:
    if requested:
        console.out.write(f"archlang {package.VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass
