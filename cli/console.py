"""Where commands print: results to the standard output, mistakes to the standard error."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console
from rich.text import Text

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.excerpt import visible

out = Console(highlight=False, soft_wrap=True)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def prepare() -> None:
    """Lets every sign be printed: pipes get UTF-8, as programs and JSON are, and a terminal that cannot show a sign its
    number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def say(message: str, remedy: str = "") -> None:
    """Says what went wrong, and what to do about it."""
    err.print(Text.assemble(("error:", "bold red"), f" {_visible(message)}"))
    if remedy:
        err.print(Text.assemble("  ", ("help:", "green"), f" {_visible(remedy)}"))


def fail(message: str, remedy: str = "", code: int = 1) -> NoReturn:
    """Says what went wrong, and ends: with 1 where the file or the data is wrong, with 2 for the command line."""
    say(message, remedy)
    raise typer.Exit(code)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints mistakes with their source."""
    from archlang.diagnostics import render

    for diagnostic in diagnostics:
        if err.is_terminal and not err.no_color:
            err.print(render.coloured(diagnostic))
        else:
            print(render.plain([diagnostic]), file=sys.stderr, end="")


def _visible(text: str) -> str:
    return "\n".join(visible(line) for line in text.splitlines())
