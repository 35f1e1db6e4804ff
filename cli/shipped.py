"""The recipe files that ship with archlang, by name: `gutlb`, `papers/ndr/table1`."""

import os
from collections.abc import Mapping
from pathlib import Path

import archlang

_RECIPES = Path(archlang.__file__).parent / "recipes"


def recipe_files() -> Mapping[str, Path]:
    """Returns the shipped files by name: those that train in minutes first, then the papers' own settings."""
    files = sorted(_RECIPES.rglob("*.arch"), key=lambda file: (len(file.relative_to(_RECIPES).parts), file))
    return {file.relative_to(_RECIPES).with_suffix("").as_posix(): file for file in files}


def program(path: Path | None) -> Path | None:
    """Returns the file that an argument names: a path, or where none exists a shipped file, as in `gutlb`,
    `gutlb.arch` and `recipes/gutlb.arch`."""
    if path is None or os.path.lexists(path) or path.is_absolute():
        return path
    name = path.as_posix().removeprefix("recipes/").removesuffix(".arch")
    return recipe_files().get(name, path)


def programs(paths: list[Path]) -> list[Path]:
    """Returns the files that arguments name, as `program`."""
    return [program(path) or path for path in paths]
