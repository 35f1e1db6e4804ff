"""The subcommands of `archlang`."""

from collections.abc import Callable
from inspect import getdoc
from typing import Annotated

import typer

from archlang.cli import (
    architectures,
    check,
    console,
    contracts,
    data,
    internal_errors,
    library,
    new,
    runs,
    servers,
    table,
    train,
    trained,
    written_tables,
)

app = typer.Typer(
    name="archlang",
    help="A language in which a neural architecture is a page of text.\n\n"
    "Begin with `archlang new project my_project`, which writes a model that trains in seconds.",
    epilog="Documentation: docs/index.md in the repository; `make site` makes pages of it. "
    "`archlang COMMAND --help` has an example of each command.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# By the panel of the help.
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Write": {
        "new": new.new, "fmt": check.fmt, "blocks": library.blocks, "tasks": library.tasks,
        "optimizers": library.optimizers, "recipes": library.recipes, "play": servers.play, "lsp": servers.lsp,
        "mcp": servers.mcp,
    },
    "Check": {
        "check": check.check, "explain": library.explain, "test": contracts.hold_blocks,
        "equal": contracts.equal,
    },
    "See": {
        "show": architectures.show, "viz": architectures.viz, "summary": architectures.summary,
        "card": architectures.card,
        "diff": architectures.diff, "inspect": trained.inspect, "report": runs.report,
    },
    "Train": {
        "ablate": written_tables.ablate, "scale": written_tables.scale,
        "field": written_tables.field,
        "train": train.train, "table": table.table, "tune": table.tune, "eval": trained.evaluate,
        "predict": trained.predict,
    },
    "Share": {"import": trained.import_model, "export": trained.export, "bug": internal_errors.bug},
}  # fmt: skip
# A command whose other options are those of `table`.
_PASSING_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel, context_settings=_PASSING_ON if _name == "field" else None)(_command)
app.add_typer(runs.app, rich_help_panel="Train")
app.add_typer(data.app, rich_help_panel="Train")


def _prepare_help(app: typer.Typer) -> None:
    """Joins the lines of each paragraph of the help of commands: typer would print the line ends of the docstring."""
    for command in app.registered_commands:
        paragraphs = (getdoc(command.callback) or "").split("\n\n")
        command.help = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    for group in app.registered_groups:
        if group.typer_instance is not None:
            _prepare_help(group.typer_instance)


_prepare_help(app)


def _print_version(requested: bool) -> None:
    if requested:
        console.out.write(
            "\n".join([*internal_errors.versions(), "device: printed by `archlang bug`, which imports torch"])
        )
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print versions.", callback=_print_version, is_eager=True, metavar="")
    ] = False,
) -> None:
    pass
