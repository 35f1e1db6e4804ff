"""Printing: results go to standard output, errors and warnings to standard error."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer
from rich.filesize import decimal
from rich.text import Text

from archlang.errors import Diagnostic
from archlang.errors.terminal import Terminal, text_column
from archlang.errors.visible import visible

if TYPE_CHECKING:
    from rich.progress import Progress

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


def require_suffix(path: Path | None, suffixes: Iterable[str], kind: str) -> None:
    """Exits if the suffix of a file to write is none of its kind."""
    if path is not None and path.suffix not in suffixes:
        fail(f"`{path}` has no suffix of {kind}", f"use one of {', '.join(suffixes)}", code=2)


def show(diagnostics: Iterable[Diagnostic]) -> None:
    """Prints diagnostics with excerpts of their source."""
    from archlang.errors import render

    for diagnostic in diagnostics:
        if err.is_terminal and not err.no_color:
            err.print(render.coloured(diagnostic))
        else:
            err.write(render.plain([diagnostic]))


def size(count: int | None) -> str:
    """Returns a number of bytes in a readable unit, such as `267.6 MB`."""
    return "size unknown" if count is None else decimal(count)


def confirm(question: str) -> bool:
    """Asks a question on standard error, and returns whether the answer is yes."""
    return typer.confirm(visible(question), err=True)


def print_row(row: Text) -> None:
    """Prints a line of a list, which a terminal truncates to its width."""
    if out.is_terminal:
        out.print(row, no_wrap=True, overflow="ellipsis", soft_wrap=False)
    else:
        out.print(row)


def progress(terminal: Terminal, transient: bool = True) -> Progress:
    """Returns a progress bar of counted steps, which only a terminal shows."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn, TimeRemainingColumn

    return Progress(
        text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TimeRemainingColumn(), console=terminal, disable=not terminal.is_terminal, transient=transient,
    )  # fmt: skip


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Prints warnings like errors, without a line of Python."""

    def print_warning(message: Warning | str, *where: object, **more: object) -> None:
        err.print(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = print_warning
        yield


def write_page(content: str, target: Path | None, folder: Path, name: str) -> None:
    """Writes a page to a file that the user has named, or by default into a folder, and prints where."""
    from archlang.reports.pages import write_file, write_inside

    if target is None:
        target = write_inside(folder, name, content)
    else:
        write_file(target, content)
    out.print(f"wrote {target}")
