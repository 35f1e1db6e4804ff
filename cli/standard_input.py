"""A program on standard input, which `-` names."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from archlang.source import Source

STANDARD_INPUT = Path("-")


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
