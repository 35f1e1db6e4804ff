"""The wording of refused files."""

import errno
from pathlib import Path


class RefusedFile(OSError):
    """A file that archlang does not open: a link, a pipe, a socket, a device, or a file that is too large."""

    def __init__(self, path: Path, message: str, remedy: str) -> None:
        super().__init__(errno.EPERM, message, str(path))
        self.path = path
        self.message = message
        self.remedy = remedy


def not_plain(path: Path, kind: str) -> RefusedFile:
    message = f"{path} is {kind}; inside its folders, archlang opens only files and folders"
    return RefusedFile(path, message, "remove it, or replace it by a copy of what it points to")


def not_regular(path: Path) -> RefusedFile:
    return RefusedFile(path, f"{path} is not a regular file", "name a file, not a pipe or a device")


def second_name(path: Path) -> RefusedFile:
    message = f"{path} has a second name (a hard link), under which another file would change too"
    return RefusedFile(path, message, "replace it by a copy of itself")


def too_large(path: Path, size: int, limit: int) -> RefusedFile:
    message = f"{path} has {size:,} bytes; archlang reads up to {limit:,}"
    return RefusedFile(path, message, "restore it from a copy")


def not_a_name(path: Path) -> RefusedFile:
    return RefusedFile(path, f"`{path}` cannot be the path of a file of this folder", "rename the file")
