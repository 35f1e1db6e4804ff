"""The folder of caches."""

import errno
import os
import stat
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """Returns `ARCHLANG_CACHE` if it is set, else the user's cache folder on this platform. The folder may not exist.

    Raises:
        OSError: the user has no home folder."""
    configured = os.environ.get("ARCHLANG_CACHE")
    try:
        return Path(configured).expanduser() if configured else user_cache_path("archlang", appauthor=False)
    except RuntimeError as error:
        raise OSError("no home folder") from error


def own_cache(name: str) -> Path:
    """Returns a folder of the cache folder, into which no other user can put anything; creates it if it is missing.

    Raises:
        OSError: it cannot be created, or another user can write it."""
    folder = cache_folder() / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = os.lstat(folder)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, "it is no folder", str(folder))
    around = os.stat(folder.parent)
    # Whoever can write the folder around it can put another in its place, unless it is sticky, as `/tmp` is.
    is_open = around.st_mode & stat.S_IWOTH and not around.st_mode & stat.S_ISVTX
    # What root puts there, root could also do to archlang itself. Windows has no such owners.
    if hasattr(os, "geteuid") and (
        is_open or status.st_mode & 0o022 or not {status.st_uid, around.st_uid} <= {0, os.geteuid()}
    ):
        raise PermissionError(errno.EPERM, "another user can write it: remove it, or take the right away", str(folder))
    return folder
