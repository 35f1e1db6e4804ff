"""From a path to a text; whatever is wrong with the file is a diagnostic."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from archlang.diagnostics import ProgramError
from archlang.source import Source, Span
from archlang.syntax import mistakes

# Bytes of a file. The longest program that a person has written here is a hundredth of it.
LARGEST = 1_000_000


def read(path: str | Path) -> Source:
    """The text of a file.

    Raises:
        ProgramError: there is no such file, or it is no text of a sensible size."""
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
    """The text of a program's bytes, which a person knows as `shown`.

    Raises:
        ProgramError: they are no text of a sensible size."""
    nowhere = Span(Source(shown, ""), 0, 0)
    if len(data) > LARGEST:
        raise ProgramError([mistakes.file_too_large(nowhere, LARGEST)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # Everything before the byte is text, so the place can be shown.
        before = Source(shown, data[: error.start].decode("utf-8-sig"))
        place = Span(before, len(before.text), len(before.text))
        raise ProgramError([mistakes.not_utf8(place, error.start)]) from None
    return Source(shown, text)


def _bytes(path: str | Path) -> bytes:
    """The bytes of a regular file, and not many more than are allowed."""
    # Reading a device or a pipe might never end.
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    if not stat.S_ISREG(mode):
        raise OSError("it is not a regular file")
    with open(path, "rb") as file:
        return file.read(LARGEST + 1)
