"""The wording of refused files."""

import errno
from collections.abc import Callable
from pathlib import Path


class RefusedFile(OSError):
    """A file that archlang does not open: a link, a pipe, a socket, a device, or a file that is too large."""

    def __init__(self, path: Path, message: str, remedy: str) -> None:
        super().__init__(errno.EPERM, message, str(path))
        self.path = path
        self.message = message
        self.remedy = remedy


def _row(message: str, remedy: str) -> Callable[..., RefusedFile]:
    """The wording of an error. A call with the path and the other facts, in order, returns the error."""
    return lambda path, *facts: RefusedFile(path, message.format(path, *facts), remedy)


not_plain = _row(
    "{0} is {1}; inside its folders, archlang opens only files and folders",
    "remove it, or replace it by a copy of what it points to",
)
not_regular = _row("{0} is not a regular file", "name a file, not a pipe or a device")
second_name = _row(
    "{0} has a second name (a hard link), under which another file would change too", "replace it by a copy of itself"
)
too_large = _row("{0} has {1:,} bytes; archlang reads up to {2:,}", "restore it from a copy")
not_a_name = _row("`{0}` cannot be the path of a file of this folder", "rename the file")
