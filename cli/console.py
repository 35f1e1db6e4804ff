"""Printing: results go to standard output, errors and warnings to standard error."""

import io
import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.text import Text

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.terminal import Terminal
from archlang.diagnostics.visible import visible

out = Terminal()
err = Terminal(stderr=True)


def prepare() -> None:
    """Makes every character printable: pipes get UTF-8, and a terminal gets `\\uXXXX` for a character that it cannot
    show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def say(message: str, remedy: str = "") -> None:
    """Prints an error message and its remedy."""
    err.print(Text.assemble(("error:", "bold red"), f" {message}"))
    if remedy:
        err.print(Text.assemble("  ", ("help:", "green"), f" {remedy}"))


def fail(message: str, remedy: str = "", code: int = 1) -> NoReturn:
    """Prints an error and exits: with 1 if a file or the data is wrong, with 2 if the command line is wrong."""
    say(message, remedy)
    raise typer.Exit(code)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics with excerpts of their source."""
    from archlang.diagnostics import render

    for diagnostic in diagnostics:
        if err.is_terminal and not err.no_color:
            err.print(render.coloured(diagnostic))
        else:
            err.write(render.plain([diagnostic]))


def confirm(question: str) -> bool:
    """Asks a question on standard error, and returns whether the answer is yes."""
    return typer.confirm(visible(question), err=True)
