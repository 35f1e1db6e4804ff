"""Which files a program may name: those of its own folder, of the library, and of folders that the user allows.

A program can come from a stranger. The real path of a file decides, so links and `..` lead nowhere else, and nothing
is opened before its path has been checked."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import archlang

_LIBRARY = os.path.realpath(Path(archlang.__file__).parent / "blocks")
# Opening a pipe must not wait for a writer, and opening a terminal must not make it the controlling terminal.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


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
        folder = self._folder_of(real)
        if folder is None:
            raise PermissionError
        return read_regular(_open_below(folder, os.path.relpath(real, folder)), most)

    def _folder_of(self, real: str) -> str | None:
        return next((folder for folder in self.folders if _is_below(real, folder)), None)


def open_path(path: str | Path) -> int:
    """Opens a file that the user has named, and returns its descriptor.

    Raises:
        OSError: the file cannot be opened."""
    return os.open(path, _FLAGS)


def read_regular(descriptor: int, most: int) -> bytes:
    """Reads up to `most` bytes of an open file and closes it.

    Raises:
        OSError: it is not a regular file, whose reading might never end, or cannot be read."""
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if not stat.S_ISREG(mode):
            raise OSError("it is not a regular file")
        return file.read(most)


def _open_below(folder: str, relative: str) -> int:
    if os.open not in os.supports_dir_fd:
        return open_path(os.path.join(folder, relative))
    *folders, name = relative.split(os.sep)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            child = os.open(part, os.O_RDONLY | os.O_DIRECTORY | _NO_LINK, dir_fd=parent)
            os.close(parent)
            parent = child
        return os.open(name, _FLAGS | _NO_LINK, dir_fd=parent)
    finally:
        os.close(parent)


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
