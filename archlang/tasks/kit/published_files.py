"""The published files that tasks read: their parsed lines, and the versions that caches compare."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from archlang.data import store
from archlang.data.mistakes import DataError
from archlang.data.registry import official
from archlang.tasks.kit import mistakes

Item = TypeVar("Item")


@runtime_checkable
class ReadsPublishedFiles(Protocol):
    """A task that may read published files."""

    def reads(self) -> tuple[tuple[str, str], ...]:
        """Returns the data set and the member of every file that its splits are made from."""


def versions(task: object) -> list[object]:
    """Returns a value for each published file that a task reads. The value differs when the file is replaced, so that
    a cache generates the splits again."""
    return [_version(*file) for file in task.reads()] if isinstance(task, ReadsPublishedFiles) else []


def _version(dataset: str, member: str) -> object:
    published = official(dataset, member)
    if published is not None and published.digest is not None:
        # Reading refuses any other content.
        return str(published.digest)
    try:
        path = store.find(dataset, member)
        status = None if path is None else path.stat()
    except (DataError, OSError):
        return None
    return None if status is None else [str(path), status.st_size, status.st_mtime_ns]


def parse_lines(dataset: str, member: str, parse: Callable[[str], Item]) -> list[Item]:
    """Returns every line of a published text file, parsed by `parse`, which raises ValueError, KeyError or IndexError
    for a malformed line.

    Raises:
        TaskError: a line is malformed.
        DataError: the file is missing or damaged."""
    return list(parse_each(dataset, member, store.lines(dataset, member), parse))


def parse_each(
    dataset: str, member: str, texts: Iterable[str], parse: Callable[[str], Item], first: int = 1
) -> Iterator[Item]:
    """Yields the lines of a published file from number `first` on, parsed as in `parse_lines`."""
    for number, text in enumerate(texts, first):
        try:
            yield parse(text)
        except (ValueError, KeyError, IndexError) as error:
            raise mistakes.damaged_line(dataset, member, number, text) from error
