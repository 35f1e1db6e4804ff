"""The programs that an argument names: paths, or names of shipped files such as `gutlb`."""

import os
from pathlib import Path

from archlang.names.shipped import recipe_files


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
