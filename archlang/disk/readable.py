"""Which files a program may name: those of its own folder, of the library, and of folders that the user allows.

A program can come from a stranger. The real path of a file decides, so links and `..` lead nowhere else, and nothing
is opened before its path has been checked."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from archlang.disk import mistakes, package
from archlang.disk.folder import Folder

_LIBRARY = os.path.realpath(package.FOLDER / "blocks")
# Opening a pipe must not wait for a writer, and opening a terminal must not make it the controlling terminal.
_NEVER_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True)
class ReadableFolders:
    """The real paths of the folders whose files, and those below, a program may name."""

    folders: tuple[str, ...] = (_LIBRARY,)

    @staticmethod
    def of_program(path: str | Path, allow: Iterable[str | Path] = ()) -> ReadableFolders:
        """Returns the folder of a program, the library, and the folders that the user allows."""
        own = os.path.dirname(path) or os.curdir
        return ReadableFolders((*(_real(folder) for folder in (own, *allow)), _LIBRARY))

    def find(self, path: str | Path) -> str | None:
        """Returns the real path of a file that the program may name, whether it exists or not; else None."""
        real = _real(path)
        return real if self._folder_of(real) is not None else None

    def read(self, real: str, most: int) -> bytes:
        """Reads up to `most` bytes of a regular file whose path `find` has returned.

        Every part of the path is opened in the folder before it and without following links, so nobody can replace a
        part by a link in the meantime.

        Raises:
            OSError: the file is missing, cannot be read, or is not a regular file."""
        root = self._folder_of(real)
        if root is None:
            raise PermissionError
        inner, name = os.path.split(os.path.relpath(real, root))
        with ExitStack() as stack:
            folder = stack.enter_context(Folder.open(Path(root)))
            if inner:
                folder = stack.enter_context(folder.folder(Path(inner).as_posix()))
            return stack.enter_context(folder.open_file(name)).read(most)

    def _folder_of(self, real: str) -> str | None:
        return next((folder for folder in self.folders if _is_below(real, folder)), None)


def read_named(path: str | Path, most: int) -> bytes:
    """Reads up to `most` bytes of a file that the user has named, which may be anywhere.

    Raises:
        OSError: the file is missing, cannot be read, or is not a regular file."""
    with open_named(path) as file:
        return file.read(most)


def open_named(path: str | Path) -> BufferedReader:
    """Opens a regular file that the user has named, which may be anywhere.

    Raises:
        RefusedFile: it is a pipe, a socket or a device, whose reading might never end.
        OSError: the file is missing or cannot be read."""
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NEVER_WAIT))  # noqa: SIM115 # returned
    # Its status is that of the open file: nobody can replace it in the meantime.
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise mistakes.not_regular(Path(path))
    return file


def _real(path: str | Path) -> str:
    """Resolves links. Unlike `Path.resolve`, it accepts circular links and names that no file can have."""
    try:
        return os.path.realpath(path)
    except ValueError:
        return os.path.abspath(path)


def _is_below(path: str, folder: str) -> bool:
    try:
        return os.path.commonpath([folder, path]) == folder
    except ValueError:  # another drive
        return False
