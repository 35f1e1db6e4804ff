"""The published files that tasks read: their lines, the mistakes that these can hold, and when they have changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar, runtime_checkable

from archlang.data import store
from archlang.data.mistakes import DataError
from archlang.data.registry import official
from archlang.tasks.kit.mistakes import TaskError

Item = TypeVar("Item")


@runtime_checkable
class Reading(Protocol):
    """A task that may read published files."""

    def reads(self) -> tuple[tuple[str, str], ...]:
        """The data sets and members of all files that its splits are made from."""


def state(task: object) -> list[object]:
    """What changes when a published file that a task reads is exchanged: then what was made from it is made again."""
    return [_state(*file) for file in task.reads()] if isinstance(task, Reading) else []


def _state(dataset: str, member: str) -> object:
    known = official(dataset, member)
    if known is not None and known.digest is not None:
        # It is refused if it is another one.
        return str(known.digest)
    try:
        place = store.find(dataset, member)
        found = None if place is None else place.stat()
    except (DataError, OSError):
        return None
    return None if found is None else [str(place), found.st_size, found.st_mtime_ns]


def parsed(dataset: str, member: str, parse: Callable[[str], Item]) -> list[Item]:
    """Every line of a published text file, understood by `parse`, which raises ValueError or KeyError if it cannot."""
    return list(understood(dataset, member, store.lines(dataset, member), parse))


def understood(dataset: str, member: str, texts: Iterable[str], parse: Callable[[str], Item]) -> Iterator[Item]:
    """The lines of a file, each by `parse`; a line that it cannot understand is named."""
    for number, text in enumerate(texts, 1):
        try:
            yield parse(text)
        except (ValueError, KeyError, IndexError) as error:
            raise unreadable(dataset, member, number, text) from error


def unreadable(dataset: str, member: str, number: int, text: str) -> TaskError:
    short = text if len(text) <= 80 else f"{text[:77]}..."
    return TaskError(
        f"line {number} of {dataset}/{member} is not what the published file has there: {short!r}",
        f"remove it, and fetch it again with `archlang data get {dataset}`",
    )


def damaged(dataset: str, member: str, reason: object) -> TaskError:
    return TaskError(
        f"{member} of {dataset} cannot be understood ({reason})",
        f"remove it, and fetch it again with `archlang data get {dataset}`",
    )


def uneven(dataset: str, first: str, count: int, second: str, other: int) -> TaskError:
    return TaskError(
        f"{first} of {dataset} has {count} lines and {second} has {other}, and the lines belong together one by one",
        f"remove both, and fetch them again with `archlang data get {dataset}`",
    )
