"""What can go wrong with a run, worded for the person who started it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics import ArchlangError
from archlang.diagnostics.names import listed


class RunError(ArchlangError):
    """A run that cannot begin, go on or be read."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}\n  {remedy}")


# The folder


def another_run(folder: Path, difference: str) -> RunError:
    return RunError(
        f"{folder} holds another run: {difference}",
        "name a new folder with `--out`; nothing was changed",
    )


def in_use(folder: Path) -> RunError:
    return RunError(f"another process is training in {folder}", "wait for it, or name a new folder with `--out`")


def not_a_run(folder: Path, missing: str) -> RunError:
    return RunError(f"{folder} is no run folder: there is no {missing}", "name a folder that `archlang train` has made")


def not_empty(folder: Path) -> RunError:
    found = "holds something else" if folder.is_dir() else "is a file"
    return RunError(f"{folder} exists and {found}", "name a new folder with `--out`; nothing was changed")


def not_written(path: Path, reason: str) -> RunError:
    return RunError(
        f"{path} cannot be written: {reason}", "make room or choose another folder; what was written before is whole"
    )


def damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged: {reason}", "take the run up from an older checkpoint, or train anew")


# Checkpoints


def no_whole_checkpoint(folder: Path) -> RunError:
    return RunError(
        f"every checkpoint in {folder} is damaged", "name a new folder with `--out` to train anew; nothing was changed"
    )


def does_not_fit(folder: Path, reason: str) -> RunError:
    return RunError(
        f"the weights in {folder} do not fit its model: {reason}",
        "measure the run, or go on with it, with the version of archlang in its versions.json",
    )


# The machine


# What the recipe asks for


# Training


# Tables


def extra_missing(name: str) -> RunError:
    return RunError(f"what `{name}` needs is not installed", f"run `pip install 'archlang[{name}]'`")


def unknown_tracker(name: str, known: Iterable[str]) -> RunError:
    return RunError(f"there is no tracker `{name}`", f"the trackers are {listed(known)}; TensorBoard is always written")


def tracker_refuses(name: str, reason: str) -> RunError:
    return RunError(f"{name} does not begin: {reason}", f"see how {name} is set up, or leave `--track {name}` out")
