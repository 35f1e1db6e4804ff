"""The published files that tasks read, line by line, with the mistakes that a file can hold."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, TypeVar

from archlang.tasks.mistakes import TaskError

Item = TypeVar("Item")


def lines(dataset: str, member: str) -> Iterator[str]:
    """The lines of a published text file, without their ends.

    Raises:
        DataError: it is not at hand, or is not what was published."""
    with opened(dataset, member) as stream:
        try:
            for line in io.TextIOWrapper(stream, encoding="utf-8", newline="\n"):
                yield line.rstrip("\n")
        except UnicodeDecodeError as error:
            raise damaged(dataset, member, error) from error


def opened(dataset: str, member: str) -> BinaryIO:
    """A published file as it is, unpacked.

    Raises:
        DataError: it is not at hand, or is not what was published."""
    try:
        from archlang.data import store
    except ModuleNotFoundError:
        raise TaskError(f"{member} of {dataset} is not at hand", "choose a task that is generated") from None
    return store.open_binary(dataset, member)


def unpacked(dataset: str, archive: str) -> Iterator[tuple[str, bytes]]:
    """The names and the contents of the files in a published archive, one after another.

    Raises:
        DataError: it is not at hand, or is not what was published.
        TaskError: it cannot be unpacked."""
    with opened(dataset, archive) as stream:
        yield from contents(f"{dataset}/{archive}", stream)


def contents(name: str, stream: BinaryIO) -> Iterator[tuple[str, bytes]]:
    try:
        with tarfile.open(fileobj=stream, mode="r|*") as archive:
            for member in archive:
                file = archive.extractfile(member) if member.isfile() else None
                if file is not None:
                    yield member.name, file.read()
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise TaskError(
            f"{name} cannot be unpacked ({error})", "fetch it again, or take it away so that it is fetched"
        ) from error


def parsed(dataset: str, member: str, parse: Callable[[str], Item]) -> list[Item]:
    """Every line of a published text file, understood by `parse`, which raises ValueError or KeyError if it cannot."""
    return list(understood(f"{dataset}/{member}", lines(dataset, member), parse))


def understood(name: str, texts: Iterable[str], parse: Callable[[str], Item]) -> Iterator[Item]:
    for number, text in enumerate(texts, 1):
        try:
            yield parse(text)
        except (ValueError, KeyError, IndexError) as error:
            raise unreadable(name, number, text) from error


def unreadable(name: str, number: int, text: str) -> TaskError:
    short = text if len(text) <= 80 else f"{text[:77]}..."
    return TaskError(
        f"line {number} of {name} is not what the published file has there: {short!r}",
        "fetch the file again, or take it away so that it is fetched",
    )


def damaged(dataset: str, member: str, reason: object) -> TaskError:
    return TaskError(
        f"{member} of {dataset} cannot be understood ({reason})",
        "fetch the file again, or take it away so that it is fetched",
    )


def uneven(dataset: str, first: str, count: int, second: str, other: int) -> TaskError:
    return TaskError(
        f"{first} of {dataset} has {count} lines and {second} has {other}, and the lines belong together one by one",
        "fetch both files again",
    )
