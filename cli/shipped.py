"""The programs that an argument names: paths, or names of shipped files such as `gutlb`."""

import os
from pathlib import Path

import typer

from archlang.cli import console, standard_input
from archlang.diagnostics.names import did_you_mean
from archlang.names.shipped import recipe_files


def program(context: typer.Context, path: Path | None) -> Path | None:
    """Returns the file that an argument names. Exits if it is `-`, or a misspelt name of a shipped file."""
    if path is not None:
        standard_input.refuse(path, context.command_path)
    return program_or_input(path)


def program_or_input(path: Path | None) -> Path | None:
    """Returns the file that an argument names, which may be `-`. Exits if it is a misspelt name of a shipped file."""
    file = named(path)
    if path is not None and file == path and not os.path.lexists(path):
        near = did_you_mean(_name(path), recipe_files())
        if near is not None:
            console.fail(f"there is no file `{path}`", f"did you mean `{near}`? `archlang recipes` lists all")
    return file


def programs(paths: list[Path]) -> list[Path]:
    """Returns the files that arguments name. Exits if one is a misspelt name of a shipped file."""
    return [program_or_input(path) or path for path in paths]


def named(path: Path | None) -> Path | None:
    """Returns the file of a name: a path, or where none exists a shipped file, as in `gutlb`, `gutlb.arch` and
    `recipes/gutlb.arch`."""
    if path is None or os.path.lexists(path) or path.is_absolute():
        return path
    return recipe_files().get(_name(path), path)


def _name(path: Path) -> str:
    return path.as_posix().removeprefix("recipes/").removesuffix(".arch")
