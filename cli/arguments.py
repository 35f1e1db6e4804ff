"""The arguments and options that commands share, and the files, programs and settings that they name."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from archlang.cli import console
from archlang.errors.names import did_you_mean
from archlang.resolve.library import recipe_files

if TYPE_CHECKING:
    from archlang.errors.source import Source

STANDARD_INPUT = Path("-")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = r"[0-9]+(\.[0-9]+)?[smhd]"


def program_file(context: typer.Context, path: Path | None) -> Path | None:
    """As `program_or_input`. Exits if the file is `-`."""
    if path is not None:
        refuse_standard_input(path, context.command_path)
    return program_or_input(path)


def program_or_input(path: Path | None) -> Path | None:
    """Returns the file that an argument names, which may be `-` or, where no file has this path, the name of a shipped
    file, as in `gutlb`, `gutlb.arch` and `recipes/gutlb.arch`. Exits if it is a misspelt name of a shipped file."""
    if path is None or os.path.lexists(path) or path.is_absolute():
        return path
    name = path.as_posix().removeprefix("recipes/").removesuffix(".arch")
    if name not in recipe_files() and (near := did_you_mean(name, recipe_files())) is not None:
        console.fail(f"there is no file `{path}`", f"did you mean `{near}`? `archlang recipes` lists all")
    return recipe_files().get(name, path)


def program_argument(help: str, metavar: str | None = None, may_be_input: bool = False) -> Any:  # Any: as of typer
    """Returns the declaration of an argument that names a program."""
    return typer.Argument(
        help=help, metavar=metavar, show_default=False, callback=program_or_input if may_be_input else program_file
    )  # fmt: skip


def flag(name: str, help: str) -> Any:
    """Returns the declaration of an option without a value."""
    return typer.Option(name, help=help, metavar="")


def setting(help: str) -> Any:
    """Returns the declaration of the option that sets a static."""
    return typer.Option("--set", help=f"{help}; may be repeated.")


def output(help: str) -> Any:
    """Returns the declaration of the option that names what a command writes."""
    return typer.Option("--out", "-o", help=help)


def matching(pattern: str, expected: str) -> Callable[[str | None], str | None]:
    """Returns a callback that refuses an argument which does not match. `expected` names the expected form."""

    def check(text: str | None) -> str | None:
        if text is not None and not re.fullmatch(pattern, text):
            raise typer.BadParameter(f"{text!r} is not {expected}")
        return text

    return check


def _seeds(text: str | None) -> str | None:
    matching(r"\d+|\d+\.\.\d+|\d+(,\d+)+", "a number of seeds; write 3, 1..5 or 1,4,7")(text)
    if text is not None and not chosen_seeds(text):
        raise typer.BadParameter(f"{text!r} names no seed; write 3, 1..5 or 1,4,7")
    return text


# Programs and their parts.
ProgramOrInput = Annotated[Path, program_argument("The program; `-` for standard input.", may_be_input=True)]
RecipeName = Annotated[str | None, typer.Argument(help="The recipe; without it, the first of the file.")]
Model = Annotated[str | None, typer.Option("--model", "-m", help="A model or block of the program.")]
Recipe = Annotated[str | None, typer.Option("--recipe", "-r", help="A recipe of the program.")]
Sets = Annotated[list[str] | None, setting("A static, as in `model.d=128` or `train.steps=100`")]
Allow = Annotated[
    list[Path] | None,
    typer.Option(
        "--allow", help="A folder outside of the program's whose files it may read; may be repeated.",
        exists=True, file_okay=False,
    ),
]  # fmt: skip
Plugin = Annotated[
    list[Path] | None,
    typer.Option(
        "--plugin", help="A Python file of your own to run, as with blocks or tasks: read it first; may be repeated."
    ),
]

# Runs.
Run = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
Split = Annotated[list[str] | None, typer.Option("--split", help="A split; may be repeated.")]
Checkpoint = Annotated[
    str | None, typer.Option("--checkpoint", help="The weights of a run: best (the default), last or a step.")
]
Device = Annotated[
    str,
    typer.Option(
        "--device", help="auto, cpu, cuda, cuda:1, mps.",
        callback=matching(r"auto|cpu|mps|cuda(:\d+)?", "one of auto, cpu, cuda, cuda:1, mps"),
    ),
]  # fmt: skip
Devices = Annotated[
    int, typer.Option("--devices", min=1, help="Devices of one machine for each run, with a process for each.")
]
Precision = Annotated[
    str, typer.Option("--precision", help="32, bf16 or 16.", callback=matching("32|bf16|16", "one of 32, bf16, 16"))
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Fetch published files of the task without asking.", metavar="")]
TimeLimit = Annotated[
    str | None,
    typer.Option(
        "--for", metavar="TIME", help="Stop after this time, as in `30m`, so that a rerun resumes.",
        callback=matching(_DURATION, "a duration; write 90s, 30m, 8h or 2d"),
    ),
]  # fmt: skip
Save = Annotated[
    str,
    typer.Option(
        "--save", metavar="TIME|STEPS", help="Also write a checkpoint after so much time or so many steps: `1_000`.",
        callback=matching(
            rf"{_DURATION}|[1-9][0-9]*(_[0-9]+)*", "a duration or a number of steps; write 15m or 1_000"
        ),
    ),
]  # fmt: skip
Eager = Annotated[bool, flag("--eager", "On a GPU, run operations one by one, and not as CUDA graphs.")]
Remat = Annotated[
    str | None,
    typer.Option(
        "--remat", metavar="auto|STEPS", help="Keep only states of loops: backward repeats so many steps at a time.",
        callback=matching("auto|[1-9][0-9]*", "a number of steps or auto; write auto, 1 or 4"),
    ),
]  # fmt: skip

# Many runs.
Seeds = Annotated[
    str | None, typer.Option("--seeds", help="A number (`3`), a range (`1..5`) or a list (`1,4`).", callback=_seeds)
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine", help="local, ray or slurm.", callback=matching("local|ray|slurm", "one of local, ray, slurm")
    ),
]
EngineOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--engine-option",
        help="Of ray and slurm: `nodes` a run. Of ray: `address`; `cpus`, `gpus` a device. Of slurm: `points` a job; "
        "submitit's, as `slurm_partition`.",
    ),
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Runs at a time.")]
Retries = Annotated[
    int,
    typer.Option("--retries", min=0, help="How often a run that the machine has ended resumes, as if it was killed."),
]

AsJson = Annotated[bool, flag("--json", "Print as JSON, and nothing else.")]


def parse_sets(sets: Iterable[str] | None) -> dict[str, str]:
    """Returns the settings by dotted path, with values as text."""
    settings: dict[str, str] = {}
    for text in sets or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value.strip():
            console.fail(f"`--set {text}` is not of the form path=value", "write `--set model.d=128`", code=2)
        settings[name.strip()] = value.strip()
    return settings


def deadline_of(time_limit: str | None) -> float | None:
    """Returns when a time such as `30m` is over if it begins now, in seconds since 1970; None without one."""
    return None if time_limit is None else time.time() + _duration(time_limit).total_seconds()


def _duration(text: str) -> timedelta:
    return timedelta(seconds=float(text[:-1]) * _UNITS[text[-1]])


def save_interval(save: str) -> int | timedelta:
    """Returns the steps or the time of `--save`."""
    return _duration(save) if save[-1] in _UNITS else int(save)


def remat_of(remat: str | None) -> int | Literal["auto"]:
    """Returns the steps of `--remat`; 0 without it."""
    return "auto" if remat == "auto" else int(remat or 0)


def chosen_seeds(seeds: str | None) -> list[int]:
    """Returns the seeds of `--seeds`: `3` means 1, 2 and 3."""
    if seeds is None:
        return []
    if ".." in seeds:
        low, _, high = seeds.partition("..")
        return list(range(int(low), int(high) + 1))
    return [int(seed) for seed in seeds.split(",")] if "," in seeds else list(range(1, int(seeds) + 1))


def arch_files(paths: Iterable[Path], code: int = 1) -> list[Path]:
    """Returns the named files and the `.arch` files in the named folders, except in hidden folders such as `.venv`.
    Exits with `code` if a folder contains none."""
    files: list[Path] = []
    for path in paths:
        # Unlike `Path.is_dir`, returns False for a name that no file can have; reading the file reports it.
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = [file for file in sorted(path.rglob("*.arch")) if not (_is_hidden(file, path) or file.is_dir())]
        if not inside:
            console.fail(f"the folder `{path}` contains no .arch file", "name a file, or another folder", code)
        files.extend(inside)
    return files


def _is_hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def is_standard_input(files: list[Path], verb: str) -> bool:
    """Returns whether the only file is `-`. Exits if it is one of several."""
    if STANDARD_INPUT in files and len(files) > 1:
        console.fail("`-` cannot be combined with files", f"{verb} the files in a separate call", code=2)
    return STANDARD_INPUT in files


def refuse_standard_input(file: Path, command: str) -> None:
    """Exits if a command that needs a file is given `-`."""
    if file == STANDARD_INPUT:
        message = f"`{command}` does not read standard input"
        console.fail(message, "save the program as a file, and name the file", code=2)


def text_or_path(file: Path) -> Source | Path:
    """Returns the program of standard input if a file is called `-`, else the file."""
    return read_standard_input()[0] if file == STANDARD_INPUT else file


def read_standard_input() -> tuple[Source, str]:
    """Returns the program of standard input, and its byte order mark. The files that it uses are those of the working
    folder.

    Raises:
        ProgramError: it is not UTF-8, or too large."""
    from archlang.syntax.reading import LARGEST, byte_order_mark_of, decode

    data = sys.stdin.buffer.read(LARGEST + 1)
    return decode(data, "<stdin>"), byte_order_mark_of(data)
