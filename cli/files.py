"""Finds the `.arch` files that a command line names."""

import os
from collections.abc import Iterable
from pathlib import Path

from archlang.cli import console


def arch_files(paths: Iterable[Path]) -> list[Path]:
    """Returns the named files and the `.arch` files in the named folders, except in hidden folders such as `.venv`."""
    files: list[Path] = []
    for path in paths:
        # Unlike `Path.is_dir`, returns False for a name that no file can have; reading the file reports it.
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [file for file in sorted(path.rglob("*.arch")) if not (_hidden(file, path) or file.is_dir())]
        if not inside:
            console.fail(f"the folder `{path}` contains no .arch file", "name a file, or another folder")
        files.extend(inside)
    return files


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)
