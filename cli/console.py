"""Where commands print: results to the standard output, mistakes to the standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console

from archlang.diagnostics import Diagnostic

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def say(message: str, remedy: str = "") -> None:
    """Says what went wrong, and what to do about it."""
    err.print(f"[bold red]error:[/] {plain(message)}")
    if remedy:
        err.print(f"  [green]help:[/] {plain(remedy)}")


def fail(message: str, remedy: str = "", code: int = 1) -> NoReturn:
    """Says what went wrong, and ends: with 1 where the file or the data is wrong, with 2 for the command line."""
    say(message, remedy)
    raise typer.Exit(code)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints mistakes with their source."""
    from archlang.diagnostics import render

    for diagnostic in diagnostics:
        if err.is_terminal and not err.no_color:
            err.print(render.coloured(diagnostic), soft_wrap=True)
        else:
            print(render.plain([diagnostic]), file=sys.stderr, end="")


def plain(text: str) -> str:
    """Text that rich prints as it is."""
    return text.replace("[", "\\[")
