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


def fail(message: str, remedy: str = "", code: int = 1) -> NoReturn:
    """Says what went wrong and what to do about it, and ends: with 1 for the file or the data, 2 for the command."""
    err.print(f"[bold red]error:[/] {_escaped(message)}")
    if remedy:
        err.print(f"  [cyan]help:[/] {_escaped(remedy)}")
    raise typer.Exit(code)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints mistakes with their source."""
    from archlang.diagnostics import render

    for diagnostic in diagnostics:
        if err.is_terminal and not err.no_color:
            err.print(render.coloured(diagnostic), soft_wrap=True)
        else:
            print(render.plain([diagnostic]), file=sys.stderr)


def _escaped(text: str) -> str:
    return text.replace("[", "\\[")
