"""The folder of caches."""

import os
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
