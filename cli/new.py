"""`archlang new`: writes the files of a new project, recipe, block or task."""

import os.path
import re
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.arguments import matching

_KINDS = ("project", "recipe", "block", "task")
# The files, by kind. `NAME` in them is the user's name, and `Name` its class. The suffix .txt keeps tools away.
_STARTERS = Path(__file__).parent / "starters"


def new(
    kind: Annotated[
        str,
        typer.Argument(
            metavar="|".join(_KINDS), help="What to write.", show_default=False,
            autocompletion=lambda incomplete: [kind for kind in _KINDS if kind.startswith(incomplete)],
            callback=matching("|".join(_KINDS), f"one of {', '.join(_KINDS)}"),
        ),
    ],
    name: Annotated[str, typer.Argument(help="Its name, in lower case, as `my_block`.", show_default=False)],
    folder: Annotated[Path, typer.Option(help="The folder of the files.")] = Path(),
) -> None:  # fmt: skip
    """Write a small program that works, with its Python and a test, to change into your own.

    `NAME.arch` has a recipe that trains in seconds; a block and a task also have `NAME.py`, which runs only with
    `--plugin NAME.py`. A project is a folder NAME with a recipe and a README. Existing files are not overwritten.

    Example: archlang new block my_block
    """
    from archlang.errors.source import Source
    from archlang.plan.check import check_text
    from archlang.reports.pages import write_file
    from archlang.resolve import library
    from archlang.syntax.parser import parse
    from archlang.syntax.printer import format_program

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        console.fail(f"`{name}` is not a name", "use lower case letters, digits and _, as in `my_block`", code=2)
    folder = folder / name if kind == "project" else folder
    files = {folder / file: text for file, text in _starter(kind, name).items()}
    if existing := [path for path in files if os.path.lexists(path)]:
        console.fail(f"{existing[0]} exists", "choose another name or `--folder`; nothing was written")
    if folder / f"{name}.py" in files and _is_importable(name):
        message = f"`{name}` cannot be a name: {name}.py would hide the Python module `{name}` from the files beside it"
        console.fail(message, "choose another name; nothing was written")
    program = folder / f"{name}.arch"
    if mistakes := check_text(files[program], str(program)):
        why = mistakes[0].message
        if library.block(name) is not None:
            why = f"the library has a block `{name}`, which the program uses"
        console.fail(f"`{name}` cannot be a name: {why}", "choose another name; nothing was written")
    # The width of the name decides where lines break.
    files[program] = format_program(parse(Source(str(program), files[program])))
    for path, text in files.items():
        write_file(path, text)
        console.out.print(f"wrote {path}")
    plugin = ["--plugin", f"{folder / name}.py"] if folder / f"{name}.py" in files else []
    if (kind == "block" and library.block(name)) or (kind == "task" and library.task(name)):
        console.out.print(f"where {program} is used, `{name}` is its {kind}, and not that of the library")
    console.out.print("next, type")
    for command in _next(kind, program, plugin, name):
        console.out.print(f"    {shlex.join(command)}")


def _starter(kind: str, name: str) -> dict[str, str]:
    class_name = "".join(word.capitalize() for word in name.split("_"))
    texts = {
        file.stem: file.read_text(encoding="utf-8")
        for part in (("recipe", "project") if kind == "project" else (kind,))
        for file in sorted((_STARTERS / part).iterdir())
    }
    texts |= {".gitignore": "runs/\n__pycache__/\n"} if kind == "project" else {}
    return {
        file.replace("NAME", name): text.replace("NAME", name).replace("Name", class_name)
        for file, text in texts.items()
    }


def _is_importable(name: str) -> bool:
    if name in sys.stdlib_module_names or name in sys.modules:
        return True
    spec = find_spec(name)
    return spec is not None and spec.origin is not None  # A folder without `__init__.py` has no origin.


def _next(kind: str, program: Path, plugin: list[str], name: str) -> list[list[str]]:
    file = str(program)
    commands = [["check", file, *plugin]]
    if kind == "block":
        commands.append(["test", file, *plugin])
    if kind == "task":
        commands.append(["data", "show", name, "--program", file, *plugin])
    run = str(program.with_name("runs") / name if kind == "project" else Path("runs") / name)
    commands.append(["train", file, *plugin, "--out", run])
    commands.append(["eval", run, *plugin])
    if kind != "task":
        commands.append(["table", file, *plugin])
    return [*(["archlang", *command] for command in commands), ["pytest", str(program.with_name(f"test_{name}.py"))]]
