"""Removes run folders."""

from pathlib import Path

from archlang.files.folder import Folder
from archlang.record import mistakes
from archlang.record.disk_errors import disk_errors_as


def remove_run(folder: Path) -> None:
    """Removes a run folder with everything in it. Links inside are removed, and what they point to is not changed.

    Raises:
        RunError: The folder is a link, or cannot be removed completely."""
    path = folder.absolute()
    with disk_errors_as(mistakes.not_removed, folder), Folder.open(path.parent) as parent:
        parent.require_plain(path.name)
        parent.remove(path.name)
