"""Where archlang keeps what it can make again."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_folder() -> Path:
    """`ARCHLANG_CACHE`, else the user's folder on this platform; it may not exist yet.

    Raises:
        OSError: there is no home folder."""
    chosen = os.environ.get("ARCHLANG_CACHE")
    try:
        if chosen:
            return Path(chosen).expanduser()
        home = Path.home()
    except RuntimeError as error:
        raise OSError("no home folder") from error
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "archlang"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "archlang"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "archlang"
