"""`archlang fmt`: one layout for every program."""

from __future__ import annotations

import os
import sys
import tempfile
from difflib import unified_diff
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.files import arch_files


def fmt(
    files: Annotated[
        list[Path], typer.Argument(help="Files or folders; `-` for the standard input.", show_default=False)
    ],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; end with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print what would change.")] = False,
) -> None:
    """Format programs in place. Comments stay, and the meaning never changes.

    A file that cannot be parsed is left as it is.

    Example: archlang fmt recipes/
    """
    from archlang.diagnostics import ProgramError
    from archlang.source import Source
    from archlang.syntax.parser import parse, read
    from archlang.syntax.printer import format_program

    if [str(path) for path in files] == ["-"]:
        sys.stdout.write(format_program(parse(Source("<stdin>", sys.stdin.read()))))
        return
    changed, failed = 0, False
    paths = arch_files(files)
    for path in paths:
        try:
            source = read(path)
            text = format_program(parse(source))
        except ProgramError as error:
            console.show(error.diagnostics)
            failed = True
            continue
        if text == source.text:
            continue
        changed += 1
        if diff:
            lines = unified_diff(source.text.splitlines(True), text.splitlines(True), str(path), f"{path} (formatted)")
            sys.stdout.writelines(lines)
        elif check:
            console.out.print(f"would format {path}")
        else:
            _replace(path, text)
            console.out.print(f"formatted {path}")
    if not diff:
        same = len(paths) - changed
        console.out.print(f"{changed} changed, {same} left as {'it is' if same == 1 else 'they are'}")
    if failed or (check and changed):
        raise typer.Exit(1)


def _replace(path: Path, text: str) -> None:
    """Writes a file beside the old one and renames it, so that no half of it is ever seen."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(name).chmod(path.stat().st_mode)
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        console.fail(f"`{path}` cannot be written: {error.strerror}", "the file is as it was")
