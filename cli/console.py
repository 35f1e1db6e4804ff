"""Printing: results go to standard output, errors and warnings to standard error."""

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
    """Makes every character printable: pipes get UTF-8, and a terminal gets `\\uXXXX` for a character that it cannot
    show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding=None if stream.isatty() else "utf-8", errors="backslashreplace")


def say(message: str, remedy: str = "") -> None:
    """Prints an error message and its remedy."""
    err.print(Text.assemble(("error:", "bold red"), f" {printable(message)}"))
    if remedy:
        err.print(Text.assemble("  ", ("help:", "green"), f" {printable(remedy)}"))


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
            print(render.plain([diagnostic]), file=sys.stderr, end="")


def printable(text: str) -> str:
    """Returns a text in which U+FFFD replaces each character that would control the terminal."""
    return "\n".join(visible(line) for line in text.splitlines())
