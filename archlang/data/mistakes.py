"""The errors of published data sets and their downloads."""

from collections.abc import Iterable
from pathlib import Path

from archlang.data.registry import Digest
from archlang.errors import ErrorWithRemedy, MachineError
from archlang.errors.names import listed, suggest


class DataError(ErrorWithRemedy):
    """A data set that cannot be fetched or read."""


class MissingError(DataError):
    """A missing file."""


class DamagedError(DataError):
    """A file with another digest than the published one."""

    def __init__(self, message: str, remedy: str, actual: Digest, expected: Digest) -> None:
        super().__init__(message, remedy)
        self.actual, self.expected = actual, expected


class DataMachineError(DataError, MachineError):
    """The network, the server or the disk keeps a data set from being fetched."""


class BrokenOffError(DataMachineError):
    """An interrupted download that can be resumed."""


def unknown_dataset(name: str, possible: Iterable[str]) -> DataError:
    possible = tuple(possible)
    return DataError(f"there is no data set `{name}`", suggest(name, possible, f"the data sets are {listed(possible)}"))


def unknown_member(dataset: str, name: str, possible: Iterable[str]) -> DataError:
    possible = tuple(possible)
    remedy = suggest(name, possible, f"`archlang data verify {dataset}` lists them")
    return DataError(f"{dataset} has no file `{name}`", remedy)


def missing(dataset: str, member: str, place: Path, published: tuple[str, Digest | None] | None) -> MissingError:
    """`published` is the published file, or the archive that holds the member, with its digest."""
    if published is None:
        return MissingError(f"{place} is missing", "put it there, or set ARCHLANG_DATA to the folder that holds it")
    name, digest = published
    with_digest = f", whose digest is {digest}" if digest is not None else ""
    message = f"{member} of {dataset} is missing"
    return MissingError(message, f"run `archlang data get {dataset}`, or put {name} into {place.parent}{with_digest}")


def damaged(place: Path, actual: Digest, expected: Digest) -> DamagedError:
    message = f"{place} is not the published file: expected the digest {expected}, found {actual}"
    return DamagedError(message, "remove it, and fetch it again with `archlang data get`", actual, expected)


not_unpacked = DataError.wording(
    "{place} cannot be decompressed ({reason})", "remove it, and fetch it again with `archlang data get`"
)
unreadable = DataError.wording(
    "{place} cannot be read ({reason})", "check its permissions, or fetch it again with `archlang data get`"
)
not_text = DataError.wording(
    "{place} is not UTF-8 text ({reason})", "remove it, and fetch it again with `archlang data get`"
)
no_folder = DataError.wording("there is no folder for data ({reason})", "set ARCHLANG_DATA to a folder")
not_in_archive = DataError.wording(
    "{place} has no file {member}", "remove it, and fetch it again with `archlang data get`"
)
unsafe_name = DataError.wording(
    "{place} names a file outside of itself: {name!r}", "remove it; it is not a trustworthy archive"
)
no_room = DataMachineError.wording(
    "{place} cannot be written ({reason})", "free some space there, or set ARCHLANG_CACHE to another folder"
)


# Downloads


def _manual_remedy(url: str, place: Path, digest: Digest | None) -> str:
    with_digest = f"; its digest is {digest}" if digest is not None else ""
    return f"download {url} by other means to {place}{with_digest}"


def broken_off(url: str, place: Path, reason: str, digest: Digest | None, here: int) -> BrokenOffError:
    if not here:
        return BrokenOffError(
            f"{url} cannot be reached ({reason})", f"connect, or {_manual_remedy(url, place, digest)}"
        )
    message = f"the download of {url} was interrupted ({reason})"
    return BrokenOffError(message, f"rerun the command to resume after {here:,} bytes")


def not_served(url: str, place: Path, status: int, digest: Digest | None) -> DataMachineError:
    return DataMachineError(f"the server answers {status} for {url}", _manual_remedy(url, place, digest))


def other_content(url: str, place: Path, actual: Digest, expected: Digest) -> DataError:
    message = f"the download of {url} is not the published {place.name}: expected the digest {expected}, found {actual}"
    return DataError(message, f"the download was deleted; {_manual_remedy(url, place, expected)}")


too_little_room = DataMachineError.wording(
    "too little free space for {place}: {missing:,} more bytes are needed, and {free:,} are free",
    "free some space, or set ARCHLANG_DATA to another folder",
)

no_room_for = DataMachineError.wording(
    "the disk is full ({reason}); the download of {place} was deleted",
    "free some space, or set ARCHLANG_DATA to another folder",
)
not_written = DataError.wording(
    "{place} cannot be written ({reason})", "set ARCHLANG_DATA to a folder that you may write to"
)
