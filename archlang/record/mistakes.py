"""The wording of errors about run folders, checkpoints, trackers and missing packages."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archlang.diagnostics import ErrorWithRemedy, MachineError
from archlang.diagnostics.names import listed
from archlang.files.mistakes import RefusedFile
from archlang.files.os_errors import os_errors_as


class RunError(ErrorWithRemedy):
    """A run cannot begin, resume or be read."""


class RunMachineError(RunError, MachineError):
    """The machine keeps a run from beginning, resuming or being read. The run itself may be intact."""


# The folder


def another_run(folder: Path, difference: str) -> RunError:
    return RunError(f"{folder} holds another run: {difference}", "name a new folder with `--out`; nothing was changed")


def in_use(folder: Path) -> RunError:
    message = f"another process is training in {folder}"
    return RunMachineError(message, "wait for it, or name a new folder with `--out`")


def not_removed_in_use(folder: Path) -> RunError:
    return RunMachineError(f"another process is training in {folder}", "stop it first; nothing was removed")


def not_a_run(folder: Path, missing: str) -> RunError:
    message = f"{folder} is not a run folder: it has no {missing}"
    return RunError(message, "name a folder that `archlang train` has created")


def not_a_folder(path: Path) -> RunError:
    return RunError(f"{path} is a file", "name a folder of runs")


def not_empty(folder: Path) -> RunError:
    reason = "holds other files" if folder.is_dir() else "is a file"
    return RunError(f"{folder} exists and {reason}", "name a new folder with `--out`; nothing was changed")


def name_taken(program: str, name: str) -> RunError:
    message = f"`{program}` uses the file `{name}`, whose name the run folder needs for its own record"
    return RunError(message, "rename the file; nothing was changed")


def not_written(path: Path, reason: str) -> RunError:
    message = f"{path} cannot be written: {reason}"
    return RunError(message, "free space or choose another folder; files that were written before are intact")


def not_read(path: Path, reason: str) -> RunMachineError:
    message = f"{path} cannot be read: {reason}"
    return RunMachineError(message, "check its owner, its permissions and the disk; nothing says that it is damaged")


def no_memory_to_read(path: Path) -> RunMachineError:
    message = f"there is not enough memory to read {path}"
    return RunMachineError(message, "close other programs, or raise the limits on memory; it is not damaged")


def not_removed(path: Path, reason: str) -> RunError:
    return RunError(f"{path} cannot be removed: {reason}", "check its owner and permissions")


def damaged(path: Path, reason: str) -> RunError:
    return RunError(f"{path} is damaged: {reason}", "restore it from a copy, or train again in a new folder")


def newer_format(folder: Path, version: int) -> RunError:
    return RunError(f"{folder} has the format {version} of a newer archlang", "update archlang")


def lines_differ(path: Path, step: int) -> RunError:
    message = f"{path} is damaged: its lines up to the checkpoint of step {step} are not those that were written"
    return RunError(
        message, "restore it from a copy; or remove the file, and the run resumes without its earlier curves"
    )


# Checkpoints


def no_intact_checkpoint(folder: Path, reason: str) -> RunError:
    message = f"every checkpoint in {folder} is damaged" + (f": {reason}" if reason else "")
    return RunError(message, "name a new folder with `--out` to train again; nothing was changed")


def not_resumable(path: Path, reason: str) -> RunError:
    message = f"{path} is damaged: {reason}"
    return RunError(message, "restore it from a copy, or train again in a new folder; nothing was changed")


def does_not_fit(folder: Path, reason: str) -> RunError:
    message = f"the weights in {folder} do not fit its model: {reason}"
    return RunError(message, "evaluate or resume the run with the version of archlang in its versions.json")


# Trackers


def unknown_tracker(name: str, possible: Iterable[str]) -> RunError:
    message = f"there is no tracker `{name}`"
    return RunError(message, f"the trackers are {listed(possible)}; TensorBoard curves need no flag")


def tracker_fails(name: str, reason: str) -> RunError:
    return RunError(f"{name} does not start: {reason}", f"see the setup of {name}, or leave out `--track {name}`")


@contextmanager
def disk_errors_as(report: Callable[[Path, str], RunError], path: Path) -> Iterator[None]:
    """Raises `report(path, reason)` in place of an OSError, and the message of a refused file unchanged."""
    try:
        with os_errors_as(report, path):
            yield
    except RunError as error:
        if isinstance(error.__cause__, RefusedFile):
            raise RunError(error.__cause__.message, error.__cause__.remedy) from error.__cause__
        raise
