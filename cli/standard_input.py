"""A program on standard input, which `-` names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.cli import console

if TYPE_CHECKING:
    from archlang.source import Source

STANDARD_INPUT = Path("-")


def text_or_path(file: Path) -> Source | Path:
    """Returns the program of standard input if a file is called `-`, else the file.

    Raises:
        ProgramError: standard input is not UTF-8, or too large."""
    return read_standard_input() if file == STANDARD_INPUT else file


def refuse(file: Path, command: str) -> None:
    """Exits if a command that needs a file is given `-`."""
    if file == STANDARD_INPUT:
        message = f"`{command}` does not read standard input"
        console.fail(message, "save the program as a file, and name the file", code=2)


def read_standard_input() -> Source:
    """Returns the program of standard input. The files that it uses are those of the working folder.

    Raises:
        ProgramError: it is not UTF-8, or too large."""
    return read_with_mark()[0]


def read_with_mark() -> tuple[Source, str]:
    """Returns the program of standard input, and its byte order mark.

    Raises:
        ProgramError: it is not UTF-8, or too large."""
    from archlang.syntax.reading import LARGEST, byte_order_mark_of, decode

    data = sys.stdin.buffer.read(LARGEST + 1)
    return decode(data, "<stdin>"), byte_order_mark_of(data)
