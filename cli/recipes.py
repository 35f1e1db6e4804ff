"""`archlang recipes`: lists, prints and copies the recipe files that ship with archlang."""

import os.path
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from archlang.cli import completion, console
from archlang.diagnostics.names import suggest
from archlang.names.shipped import program_text, recipe_files, summary


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A file, as `gutlb` or `papers/ndr/table1`. Without a name, list all.",
            autocompletion=completion.shipped,
        ),
    ] = None,
    copy: Annotated[
        Path | None, typer.Option("--copy", metavar="FOLDER", help="Copy the file to a folder, to change it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """List the recipe files that ship with archlang, print one, or copy it.

    Every command that takes a program also takes these names, from any folder.

    Example: archlang recipes gutlb
    """
    files = recipe_files()
    if name is not None and name not in files:
        console.fail(f"there is no recipe file `{name}`", suggest(name, files, "`archlang recipes` lists all"), code=2)
    if copy is not None:
        if name is None:
            console.fail("`--copy` needs the name of a file", "write `archlang recipes gutlb --copy .`", code=2)
        _copy(files[name], copy)
    elif as_json:
        names = files if name is None else [name]
        facts = [{"name": key, "summary": summary(program_text(files[key])), "path": str(files[key])} for key in names]
        console.out.write_json(facts)
    elif name is not None:
        console.out.write(program_text(files[name]).removesuffix("\n"))
    else:
        width = max(map(len, files)) + 2
        for key, file in files.items():
            console.out.print(Text(key.ljust(width), "bold").append(summary(program_text(file)), "not bold"))


def _copy(file: Path, folder: Path) -> None:
    from archlang.pages.files import write_file

    target = folder / file.name
    if os.path.lexists(target):
        console.fail(f"{target} exists", "name another folder; nothing was written")
    write_file(target, program_text(file))
    console.out.print(f"wrote {target}", markup=False)
    console.out.print("next, type", markup=False)
    for command in ("check", "train"):
        console.out.print(f"    archlang {command} {target}", markup=False)
