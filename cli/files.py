"""The `.arch` files that a command line names."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from archlang.cli import console


def arch_files(paths: Iterable[Path]) -> list[Path]:
    """The named files, and those below the named folders."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(path.rglob("*.arch"))
            if not inside:
                console.fail(f"the folder `{path}` holds no .arch file", "name a file, or another folder")
            found.extend(inside)
        else:
            found.append(path)
    return found
