"""What the shell completes: programs, recipes, run folders, and names of the library.

Completion runs at each press of the tab key, so it reads no more than it needs: recipes are found in the text of a
program, and runs by the name of their record."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import typer

from archlang.disk.mistakes import RefusedFile
from archlang.disk.readable import read_named
from archlang.resolve.shipped import recipe_files

KINDS = ("project", "recipe", "block", "task")  # that `archlang new` writes
_RECIPE = re.compile(r"^recipe[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_MOST_BYTES = 1_000_000


def named(path: Path | None) -> Path | None:
    """Returns the file of a name: a path, or where none exists a shipped file, as in `gutlb`, `gutlb.arch` and
    `recipes/gutlb.arch`."""
    if path is None or os.path.lexists(path) or path.is_absolute():
        return path
    return recipe_files().get(shipped_name(path), path)


def shipped_name(path: Path) -> str:
    return path.as_posix().removeprefix("recipes/").removesuffix(".arch")


def programs(incomplete: str) -> list[str]:
    """The `.arch` files and folders that begin with a text, and the names of shipped files."""
    return [*_paths(incomplete, lambda entry: entry.name.endswith(".arch")), *_beginning(incomplete, recipe_files())]


def runs(incomplete: str) -> list[str]:
    """The run folders and other folders that begin with a text; at first those below `runs`."""
    folders = _paths(incomplete, lambda entry: False)
    if not incomplete:
        records = sorted(Path("runs").glob("*/run.json")) + sorted(Path("runs").glob("*/*/run.json"))
        folders = [str(record.parent) for record in records] or folders
    return folders


def recipes(context: typer.Context, incomplete: str) -> list[str]:
    """The recipes of the program that the command line names."""
    path = named(Path(str(context.params.get("file") or "")))
    try:
        text = read_named(path or "", _MOST_BYTES).decode("utf-8", "replace")
    except (OSError, RefusedFile):
        return []
    return _beginning(incomplete, _RECIPE.findall(text))


def names(context: typer.Context, incomplete: str) -> list[str]:
    """What the command lists: blocks, tasks, optimizers, recipe files or codes of errors."""
    from archlang.errors import codes
    from archlang.resolve import library

    listed: Mapping[str | None, Callable[[], Iterable[str]]] = {
        "blocks": library.blocks, "tasks": library.task_names, "optimizers": library.optimizer_names,
        "recipes": recipe_files, "explain": codes.titles,
    }  # fmt: skip
    return _beginning(incomplete, (name.rpartition(".")[2] for name in listed[context.info_name]()))


def kinds(incomplete: str) -> list[str]:
    return _beginning(incomplete, KINDS)


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _paths(incomplete: str, is_wanted: Callable[["os.DirEntry[str]"], bool]) -> list[str]:
    """The folders, with a slash at the end, and the wanted files that begin with a path."""
    head, name = os.path.split(incomplete)

    def entries() -> Iterator[str]:
        try:
            with os.scandir(head or ".") as listing:
                for entry in listing:
                    if entry.name.startswith(name) and (name.startswith(".") or not entry.name.startswith(".")):
                        if entry.is_dir():
                            yield os.path.join(head, entry.name) + "/"
                        elif is_wanted(entry):
                            yield os.path.join(head, entry.name)
        except OSError:
            return

    return sorted(entries())
