"""`archlang fmt`: formats programs in place."""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.files import arch_files
from archlang.cli.standard_input import STANDARD_INPUT, read_with_mark

if TYPE_CHECKING:
    from archlang.source import Source


def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Files or folders; `-` for standard input.", show_default=False, autocompletion=completion.programs
        ),
    ],
    check: Annotated[bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Write nothing; print the changes as a unified diff.")] = False,
) -> None:
    """Format programs in place. Comments and meaning stay the same.

    The clauses of an extern are written in one order. Line ends become line feeds; a byte order mark stays. A file
    with syntax errors is not changed.

    Example: archlang fmt recipes/
    """
    from archlang.diagnostics import ProgramError
    from archlang.syntax.parser import parse
    from archlang.syntax.printer import format_program
    from archlang.syntax.reading import read

    piped = files == [STANDARD_INPUT]
    if STANDARD_INPUT in files and not piped:
        console.fail("`-` cannot be combined with files", "format the files in a separate call", code=2)
    paths = files if piped else arch_files(files)
    changed = failed = 0
    for path in paths:
        try:
            source, mark = read_with_mark() if piped else (read(path), "")
            text = format_program(parse(source))
        except ProgramError as error:
            console.show(error.diagnostics)
            failed += 1
            continue
        differs = text != source.text
        changed += differs
        if diff:
            console.out.write_program(_difference(source, text))
        elif piped and not check:
            console.out.write_program(mark + text)
        elif differs and check:
            console.out.print(f"would format {source.path}")
        elif differs:
            _replace(path, text)
            console.out.print(f"formatted {path}")
    if not diff and not piped:
        console.out.print(_summary(changed, len(paths) - changed - failed, failed, check))
    if failed or (check and changed):
        raise typer.Exit(1)


def _difference(source: Source, text: str) -> str:
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    lines = unified_diff(before, after, source.path, f"{source.path} (formatted)")
    return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def _summary(changed: int, same: int, failed: int, dry_run: bool) -> str:
    verb = "would change" if dry_run else "changed"
    parts = [f"{changed} {verb}", f"{same} unchanged"]
    return ", ".join([*parts, f"{failed} not formatted"] if failed else parts)


def _replace(path: Path, text: str) -> None:
    from archlang.diagnostics import ErrorWithRemedy
    from archlang.files.atomic import write_atomically
    from archlang.syntax.reading import byte_order_mark

    try:
        target = path.resolve(strict=True)  # a link stays a link
        write_atomically(target, byte_order_mark(target) + text)
    except OSError as error:
        raise ErrorWithRemedy(f"`{path}` cannot be written: {error.strerror}", "the file was not changed") from error
