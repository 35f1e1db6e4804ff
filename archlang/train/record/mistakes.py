"""The wording of errors about run folders, checkpoints, trackers and missing packages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archlang.disk.mistakes import RefusedFile
from archlang.disk.os_errors import os_errors_as
from archlang.errors import ErrorWithRemedy, MachineError


class RunError(ErrorWithRemedy):
    """A run cannot begin, resume or be read."""


class RunMachineError(RunError, MachineError):
    """The machine keeps a run from beginning, resuming or being read. The run itself may be intact."""


class RunWarning(UserWarning):
    """A run continues without a part of its record, with another checkpoint, or computed in another way."""


class FolderInUse(RunMachineError):
    """Another process trains in the folder."""


# The folder

another_run = RunError.wording(
    "{folder} holds another run: {difference}", "name a new folder with `--out`; nothing was changed"
)
in_use = FolderInUse.wording(
    "another process is training in {folder}", "wait for it, or name a new folder with `--out`"
)
not_a_run = RunError.wording(
    "{folder} is not a run folder: it has no {missing}", "name a folder that `archlang train` has created"
)
not_a_folder = RunError.wording("{path} is a file", "name a folder of runs")
name_taken = RunError.wording(
    "`{program}` uses the file `{name}`, whose name the run folder needs for its own record",
    "rename the file; nothing was changed",
)
not_written = RunError.wording(
    "{path} cannot be written: {reason}",
    "free space or choose another folder; files that were written before are intact",
)
not_read = RunMachineError.wording(
    "{path} cannot be read: {reason}", "check its owner, its permissions and the disk; nothing says that it is damaged"
)
no_memory_to_read = RunMachineError.wording(
    "there is not enough memory to read {path}",
    "close other programs, or raise the limits on memory; it is not damaged",
)
damaged = RunError.wording("{path} is damaged: {reason}", "restore it from a copy, or train again in a new folder")
other_format = RunError.wording(
    "{folder} has the format {version} of saved models, and this archlang reads {own}", "use archlang {archlang}"
)
lines_differ = RunError.wording(
    "{path} is damaged: its lines up to the checkpoint of step {step} are not those that were written",
    "restore it from a copy; or remove the file, and the run resumes without its earlier curves",
)
not_empty = RunError.wording("{folder} exists and {reason}", "name a new folder with `--out`; nothing was changed")

# Checkpoints

not_resumable = RunError.wording(
    "{path} is damaged: {reason}", "restore it from a copy, or train again in a new folder; nothing was changed"
)
does_not_fit = RunError.wording(
    "the weights in {folder} do not fit its model: {reason}",
    "evaluate or resume the run with the version of archlang in its versions.json",
)
no_intact_checkpoint = RunError.wording(
    "every checkpoint in {folder} is damaged{reason}",
    "name a new folder with `--out` to train again; nothing was changed",
)

# Trackers

unknown_tracker = RunError.wording(
    "there is no tracker `{name}`", "the trackers are {possible}; TensorBoard curves need no flag"
)
tracker_fails = RunError.wording(
    "{name} does not start: {reason}", "see the setup of {name}, or leave out `--track {name}`"
)


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
