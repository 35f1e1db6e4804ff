"""What can go wrong with a run, worded for the person who started it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from archlang.diagnostics import ArchlangError


class RunError(ArchlangError):
    """A run that cannot begin, go on or be read."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}\n  {remedy}")


def another_recipe(folder: Path, difference: str) -> RunError:
    return RunError(
        f"{folder} holds another run: {difference}",
        "name a new folder with `--out`; nothing was changed",
    )


def not_a_run(folder: Path, missing: str) -> RunError:
    return RunError(f"{folder} is no run folder: there is no {missing}", "name a folder that `archlang train` has made")


def not_empty(folder: Path) -> RunError:
    return RunError(f"{folder} exists and holds something else", "name a new folder with `--out`; nothing was changed")


def no_checkpoint(folder: Path) -> RunError:
    return RunError(f"{folder} has no checkpoint yet", "train it further: `archlang train RECIPE --out " + f"{folder}`")


def damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged: {reason}", "take the run up from an older checkpoint, or train anew")


def not_written(path: Path, reason: str) -> RunError:
    return RunError(
        f"{path} cannot be written: {reason}", "make room or choose another folder; the last checkpoint is whole"
    )


def no_device(wanted: str) -> RunError:
    return RunError(
        f"there is no device `{wanted}` here", "use `--device cpu`, or a torch that was built for your accelerator"
    )


def no_such_split(task: str, split: str, known: Iterable[str]) -> RunError:
    return RunError(f"the task `{task}` has no split `{split}`", f"its splits are {', '.join(known)}")


def no_such_metric(task: str, metric: str, known: Iterable[str]) -> RunError:
    return RunError(f"the task `{task}` has no metric `{metric}`", f"its metrics are {', '.join(known)}")


def not_finite(step: int, folder: Path) -> RunError:
    return RunError(
        f"the loss is not a number any more at step {step}",
        f"lower `train.lr` or clip gradients; the last checkpoint is in {folder}",
    )


def empty_split(task: str, split: str) -> RunError:
    return RunError(f"the split `{split}` of `{task}` has no items", "ask for a larger size of this split")
