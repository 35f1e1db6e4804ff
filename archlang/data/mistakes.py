"""What can be wrong with the files of a data set, worded for the person who wants them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from archlang.data.digests import Digest
from archlang.diagnostics import ArchlangError
from archlang.diagnostics.names import listed, suggest


class DataError(ArchlangError):
    """A data set that cannot be fetched or read: `message` says what is wrong, `remedy` what to do."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}: {remedy}")


class MissingError(DataError):
    """A file that is not at hand."""


class DamagedError(DataError):
    """A file with another digest than the published one."""

    def __init__(self, message: str, remedy: str, found: Digest, expected: Digest) -> None:
        super().__init__(message, remedy)
        self.found, self.expected = found, expected


class BrokenOffError(DataError):
    """A download that can be gone on with."""


def unknown_dataset(name: str, known: Iterable[str]) -> DataError:
    known = tuple(known)
    return DataError(f"no data set is called `{name}`", suggest(name, known, f"there are {listed(known)}"))


def unknown_member(dataset: str, name: str, known: Iterable[str]) -> DataError:
    known = tuple(known)
    remedy = suggest(name, known, f"`archlang data verify {dataset}` lists them")
    return DataError(f"{dataset} has no file `{name}`", remedy)


def missing(dataset: str, member: str, place: Path, known: tuple[str, Digest | None] | None) -> MissingError:
    """`known` is the published file, or the archive that holds the member, with its digest."""
    if known is None:
        return MissingError(f"{place} is missing", "put it there, or set ARCHLANG_DATA to the folder that holds it")
    name, digest = known
    told = f", whose digest is {digest}" if digest is not None else ""
    return MissingError(
        f"{member} of {dataset} is not at hand",
        f"run `archlang data get {dataset}`, or put {name} into {place.parent}{told}",
    )


def damaged(place: Path, found: Digest, expected: Digest) -> DamagedError:
    return DamagedError(
        f"{place} is not the published file: its digest is {found}, and that of the published file is {expected}",
        "remove it, and fetch it again with `archlang data get`",
        found,
        expected,
    )


def not_unpacked(place: Path, reason: object) -> DataError:
    return DataError(f"{place} cannot be unpacked ({reason})", "remove it, and fetch it again with `archlang data get`")


def unreadable(place: Path, reason: object) -> DataError:
    return DataError(
        f"{place} cannot be read ({reason})", "see who owns it, or fetch it again with `archlang data get`"
    )


def not_text(place: Path, reason: object) -> DataError:
    return DataError(
        f"{place} is not text in UTF-8 ({reason})", "remove it, and fetch it again with `archlang data get`"
    )


def no_folder(reason: object) -> DataError:
    return DataError(f"there is no folder for data ({reason})", "set ARCHLANG_DATA to one")


def not_in_archive(place: Path, member: str) -> DataError:
    return DataError(f"{place} does not hold {member}", "remove it, and fetch it again with `archlang data get`")


def unsafe_name(place: Path, name: str) -> DataError:
    return DataError(f"{place} names a file outside of itself: {name!r}", "it is not an archive to trust; remove it")


def no_room(place: Path, reason: object) -> DataError:
    return DataError(
        f"{place} cannot be written ({reason})", "make room there, or set ARCHLANG_CACHE to another folder"
    )


# Downloads


def _by_hand(url: str, place: Path, digest: Digest | None) -> str:
    told = f"; its digest is {digest}" if digest is not None else ""
    return f"fetch {url} by other means, and put it to {place}{told}"


def broken_off(url: str, place: Path, reason: str, digest: Digest | None, here: int) -> BrokenOffError:
    if not here:
        return BrokenOffError(f"{url} cannot be reached ({reason})", f"connect, or {_by_hand(url, place, digest)}")
    return BrokenOffError(
        f"{url} broke off ({reason})", f"the same command goes on from the {here:,} bytes that are here"
    )


def not_served(url: str, place: Path, status: int, digest: Digest | None) -> DataError:
    return DataError(f"the server answers {status} for {url}", _by_hand(url, place, digest))


def other_content(url: str, place: Path, found: Digest, expected: Digest) -> DataError:
    return DataError(
        f"what came from {url} is not the published {place.name}: its digest is {found} and not {expected}",
        f"nothing of it was kept; {_by_hand(url, place, expected)}",
    )


def too_little_room(place: Path, missing: int, free: int) -> DataError:
    return DataError(
        f"there is no room for {place}: it needs {missing:,} bytes more, and {free:,} are free",
        "make room, or set ARCHLANG_DATA to another folder",
    )


def no_room_for(place: Path, reason: str | None) -> DataError:
    return DataError(
        f"the disk is full ({reason}), and nothing of {place} was kept",
        "make room, or set ARCHLANG_DATA to another folder",
    )


def not_written(place: Path, reason: object) -> DataError:
    return DataError(f"{place} cannot be written ({reason})", "set ARCHLANG_DATA to a folder that you may write to")
