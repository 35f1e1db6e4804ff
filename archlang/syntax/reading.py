"""Reads source files, and reports unreadable files as diagnostics."""

import os
import stat
from pathlib import Path

from archlang.diagnostics import ProgramError
from archlang.source import Source, Span
from archlang.syntax import mistakes

# The largest file, in bytes; a hundred times the longest program of this repository.
LARGEST = 1_000_000


def read(path: str | Path) -> Source:
    """Reads a file.

    Raises:
        ProgramError: the file cannot be read, is too large, or is not UTF-8."""
    shown = os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")
    nowhere = Span(Source(shown, ""), 0, 0)
    try:
        data = _bytes(path)
    except IsADirectoryError:
        raise ProgramError([mistakes.file_unreadable(nowhere, "it is a folder")]) from None
    except FileNotFoundError:
        raise ProgramError([mistakes.file_unreadable(nowhere, "there is no such file")]) from None
    except PermissionError:
        raise ProgramError([mistakes.file_unreadable(nowhere, "permission is denied")]) from None
    except OSError as error:
        raise ProgramError([mistakes.file_unreadable(nowhere, (error.strerror or str(error)).lower())]) from None
    except ValueError:
        raise ProgramError([mistakes.file_unreadable(nowhere, "no file can have this name")]) from None
    return decode(data, shown)


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


def _bytes(path: str | Path) -> bytes:
    """Reads a regular file, up to one byte more than `LARGEST`."""
    # Reading a device or a pipe might never end.
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise OSError("it is not a regular file")
    with open(path, "rb") as file:
        return file.read(LARGEST + 1)
