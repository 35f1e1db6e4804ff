"""Reads source files, and reports unreadable files as diagnostics."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from archlang.disk.mistakes import RefusedFile
from archlang.disk.readable import ReadableFolders, read_named
from archlang.errors import ProgramError, Source, Span
from archlang.errors.visible import visible
from archlang.syntax import mistakes

# The largest file, in bytes; a hundred times the longest program of this repository.
LARGEST = 1_000_000
BYTE_ORDER_MARK = "\ufeff"
_REASONS: dict[type[Exception], str] = {
    IsADirectoryError: "it is a folder",
    FileNotFoundError: "there is no such file",
    RefusedFile: "it is not a regular file",
    PermissionError: "permission is denied",
    ValueError: "no file can have this name",
}


def read(path: str | Path) -> Source:
    """Reads a file that the user has named.

    Raises:
        ProgramError: the file cannot be read, is too large, or is not UTF-8."""
    return _read(path, lambda: read_named(path, LARGEST + 1))


def read_used(path: str | Path, real: str, readable: ReadableFolders) -> Source:
    """Reads a file that a program names. `path` is its path in messages, and `real` the path that `readable` returns.

    Raises:
        ProgramError: the file cannot be read, is too large, or is not UTF-8."""
    return _read(path, lambda: readable.read(real, LARGEST + 1))


def _read(path: str | Path, read_bytes: Callable[[], bytes]) -> Source:
    shown = os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")
    nowhere = Span(Source(shown, ""), 0, 0)
    if visible(shown) != shown:  # it would end the lines of comments and of messages
        raise ProgramError([mistakes.file_unreadable(nowhere, "its name has a control character")])
    try:
        data = read_bytes()
    except (OSError, ValueError, RefusedFile) as error:
        reason = next((reason for kind, reason in _REASONS.items() if isinstance(error, kind)), "")
        reason = reason or str(getattr(error, "strerror", None) or error).lower()
        mistake = mistakes.file_unreadable(nowhere, reason)
        if isinstance(error, FileNotFoundError):
            mistake = replace(
                mistake, remedy="check the path; `archlang recipes` lists the programs that come with archlang"
            )
        raise ProgramError([mistake]) from None
    return decode(data, shown)


def byte_order_mark(path: Path) -> str:
    """Returns the byte order mark at the beginning of a file that `read` has read, which the text of its source lacks;
    empty if there is none.

    Raises:
        OSError: the file cannot be read."""
    return byte_order_mark_of(read_named(path, 3))


def byte_order_mark_of(data: bytes) -> str:
    """Returns the byte order mark at the beginning of some bytes; empty if there is none."""
    return BYTE_ORDER_MARK if data.startswith(BYTE_ORDER_MARK.encode()) else ""


def decode(data: bytes, shown: str) -> Source:
    """Decodes the bytes of a program; `shown` is the path in messages.

    Raises:
        ProgramError: the bytes are too many, or not UTF-8."""
    nowhere = Span(Source(shown, ""), 0, 0)
    if len(data) > LARGEST:
        raise ProgramError([mistakes.file_too_large(nowhere, LARGEST)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The text before the invalid byte gives its line and column.
        before = Source(shown, data[: error.start].decode("utf-8-sig"))
        place = Span(before, len(before.text), len(before.text))
        raise ProgramError([mistakes.not_utf8(place, error.start)]) from None
    return Source(shown, text)
