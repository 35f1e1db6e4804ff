"""Files and folders that the user names, written through the door to the folder that holds them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from archlang.disk.folder import Folder


@contextmanager
def atomic_folder(destination: Path, *, overwrite: bool = True, durable: bool = True) -> Iterator[Path]:
    """Yields a new folder to write into and renames it to `destination` at the end, as `Folder.new_folder` does.

    Raises:
        OSError: The folder cannot be written; an existing destination is unchanged."""
    with (
        Folder.open(destination.parent) as parent,
        parent.new_folder(destination.name, overwrite=overwrite, durable=durable) as unfinished,
    ):
        yield unfinished.path


def write_atomically(destination: Path, content: str | bytes, *, durable: bool = True) -> None:
    """Writes bytes, or text as UTF-8, to a file, which keeps the permissions of the file that it replaces. A link is
    replaced by the file, and what it points to is not changed.

    Args:
        durable: Flush to disk before renaming. Caches that verify their content can skip the flush.

    Raises:
        OSError: The file cannot be written; an existing destination is unchanged."""
    with Folder.open(destination.parent) as parent:
        parent.write(destination.name, content, durable=durable, over_link=True)


def remove_folder(folder: Path) -> None:
    """Removes a folder in one step for other processes: renames it, then deletes it. Errors are ignored."""
    with suppress(OSError), Folder.open(folder.parent) as parent:
        parent.discard(folder.name)
