"""Operating-system errors: the path that they are about, and whether the machine is their cause."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

NO_MEMORY = errno.ENOMEM
# What to change on the machine, by the number of the error. Errors such as "no such file" are not among them: they are
# mistakes in a path.
_REMEDIES = {
    errno.ENOSPC: "free space",
    errno.EDQUOT: "free space, or raise your quota",
    errno.EFBIG: "raise the limit on the size of files: `ulimit -f unlimited`",
    errno.EROFS: "choose a folder that you may write to",
    errno.EACCES: "check the owner and the permissions",
    errno.EPERM: "check the owner and the permissions",
    errno.EMFILE: "raise the limit on open files: `ulimit -n 1024`",
    errno.ENFILE: "close other programs: the system has too many open files",
    errno.ENOMEM: "close other programs, or raise the limits on memory",
    errno.EAGAIN: "close other programs, or raise the limit on processes: `ulimit -u`",
    errno.EIO: "check the disk: it does not read or write",
    errno.ESTALE: "check the network file system",
    errno.ENODEV: "check the device",
    errno.ENXIO: "check the device",
    errno.ETIMEDOUT: "check the network file system",
}


@contextmanager
def os_errors_as(report: Callable[[Path, str], Exception], path: Path) -> Iterator[None]:
    """Raises `report(path, reason)` in place of an OSError."""
    try:
        yield
    except OSError as error:
        raise report(path, os_reason(error)) from error


def os_reason(error: OSError) -> str:
    """Returns what the system says about an error, with a remedy if space or permissions are not the cause."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EFBIG, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO, errno.ESTALE):
        return f"{reason} ({_REMEDIES[error.errno]})"
    return reason


def machine_remedy(error: OSError) -> str | None:
    """Returns what to change on the machine; None if the machine is not the cause, as for a missing file."""
    return None if error.errno is None else _REMEDIES.get(error.errno)


def is_current_folder_deleted() -> bool:
    """Returns whether the current folder of this process no longer exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
