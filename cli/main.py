"""The command `archlang`: its subcommands, and the exit code of each kind of failure."""

import os
import sys
from typing import Annotated

import typer

import archlang
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
    report,
    runs,
    show,
    summary,
    table,
    tasks,
    train,
    tune,
    viz,
)
from archlang.diagnostics import ArchlangError, ErrorWithRemedy, ProgramError

app = typer.Typer(
    name="archlang",
    help="A language in which a neural architecture is a page of text.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("check")(check.check)
app.command("fmt")(fmt.fmt)
app.command("show")(show.show)
app.command("viz")(viz.viz)
app.command("diff")(diff.diff)
app.command("summary")(summary.summary)
app.command("explain")(explain.explain)
app.command("blocks")(blocks.blocks)
app.command("tasks")(tasks.tasks)
app.command("test")(contracts.hold_blocks)
app.command("train")(train.train)
app.command("table")(table.table)
app.command("tune")(tune.tune)
app.command("eval")(evaluate.evaluate)
app.command("export")(export.export)
app.command("inspect")(inspect.inspect)
app.command("report")(report.report)
app.add_typer(runs.app)
app.add_typer(data.app)


def _print_version(requested: bool) -> None:
    if requested:
        console.out.write(f"archlang {archlang.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line. Every failure ends with a message and an exit code, never with a traceback."""
    console.prepare()
    try:
        app()
    except ProgramError as error:
        console.show(error.diagnostics)
        sys.exit(1)
    except ErrorWithRemedy as error:
        console.say(error.message, error.remedy)
        sys.exit(1)
    except ArchlangError as error:
        console.say(str(error))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader has closed the pipe, as `head` does. Python would write to it once more on exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except Exception as error:
        if os.environ.get("ARCHLANG_DEBUG"):
            raise
        remedy = "this is a bug in archlang; set ARCHLANG_DEBUG=1 for the traceback, and please report it"
        console.say(f"internal error: {type(error).__name__}: {error}", remedy)
        sys.exit(70)
