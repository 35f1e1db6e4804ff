"""The `.arch` files that a command line names."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from archlang.cli import console


def arch_files(paths: Iterable[Path]) -> list[Path]:
    """The named files, and those below the named folders; what lies below `.venv` and the like is somebody else's."""
    found: list[Path] = []
    for path in paths:
        # Unlike `Path.is_dir`, false also for a name that no file can have: reading the file says so.
        if not os.path.isdir(path):
            found.append(path)
            continue
        inside = [file for file in sorted(path.rglob("*.arch")) if not (_hidden(file, path) or file.is_dir())]
        if not inside:
            console.fail(f"the folder `{path}` holds no .arch file", "name a file, or another folder")
        found.extend(inside)
    return found


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
