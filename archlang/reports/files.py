"""Writes pages, pictures and tables to disk, and the errors of that."""

from pathlib import Path

from archlang.disk.folder import Folder, write_atomically
from archlang.disk.mistakes import RefusedFile
from archlang.disk.os_errors import os_errors_as
from archlang.errors import ErrorWithRemedy, MachineError


class PageError(ErrorWithRemedy):
    """A page, picture or table that cannot be drawn or written."""


class PageMachineError(PageError, MachineError):
    """A page, picture or table that this machine cannot draw."""


not_written = PageError.wording(
    "{path} cannot be written: {reason}", "free some space or choose another file; no file was changed"
)
refused = PageError.wording("{message}", "{remedy}, or choose another file with `--out`")


def library_missing(purpose: str, library: str, alternative: str = "") -> PageMachineError:
    remedy = "run `pip install 'archlang[view]'`" + (f", or {alternative}" if alternative else "")
    return PageMachineError(f"{purpose} need {library}, which is not installed", remedy)


def write_file(path: Path, content: str | bytes) -> None:
    """Writes a file that the user has named atomically, with the folders that it needs. Text is encoded as UTF-8.

    Raises:
        PageError: The file cannot be written."""
    with os_errors_as(not_written, path):
        Folder.create(path.parent).close()
        write_atomically(path, content)


def write_inside(folder: Path, name: str, content: str | bytes) -> Path:
    """Writes a file of a folder of runs atomically, and returns its path. The folder may come from a stranger: a link
    in place of the file is refused.

    Raises:
        PageError: The file is refused or cannot be written."""
    path = folder / name
    with os_errors_as(not_written, path):
        try:
            with Folder.create(folder) as opened:
                opened.write(name, content)
        except RefusedFile as error:
            raise refused(error.message, error.remedy) from error
    return path
