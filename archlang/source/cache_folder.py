"""Where archlang keeps what it can make again."""

from __future__ import annotations

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """`ARCHLANG_CACHE`, else the user's folder on this platform; it may not exist yet.

    Raises:
        OSError: there is no home folder."""
    chosen = os.environ.get("ARCHLANG_CACHE")
    try:
        return Path(chosen).expanduser() if chosen else user_cache_path("archlang", appauthor=False)
    except RuntimeError as error:
        raise OSError("no home folder") from error
