"""Errors of the disk, reported as errors of a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from archlang.files.mistakes import RefusedFile
from archlang.files.os_errors import os_errors_as
from archlang.record.mistakes import RunError


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
