"""The files of published data sets that are at hand: where they are, and what they hold.

    folder()                          ARCHLANG_DATA, or `data` in the cache folder
    find("scan", "tasks.txt")         the file that holds it, or None
    open_binary("scan", "tasks.txt")  its content

A file may be packed with xz or gzip, or stand in the archive that it was published in. Its digest is compared with the
published one before its first byte is used."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from archlang.data import archives, mistakes
from archlang.data.compression import ENDINGS, Stored
from archlang.data.digest_cache import digest_of
from archlang.data.digests import Digest, Rule
from archlang.data.registry import DATASETS, OfficialFile, official
from archlang.source.cache_folder import cache_folder


def folder() -> Path:
    """Where published files are: a folder for each data set.

    Raises:
        DataError: there is no place for one."""
    chosen = os.environ.get("ARCHLANG_DATA")
    try:
        return (Path(chosen).expanduser() if chosen else cache_folder() / "data").absolute()
    except (OSError, RuntimeError) as error:
        raise mistakes.no_folder(error) from error


def find(dataset: str, member: str) -> Path | None:
    """The file that holds a member of a data set: by itself, packed, or as the archive that it was published in."""
    archive = _archive(dataset, member)
    stored = _alone(dataset, member) or (None if archive is None else _alone(dataset, archive.member))
    return None if stored is None else stored.place


def open_binary(dataset: str, member: str) -> BinaryIO:
    """The content of a member of a data set.

    Raises:
        DataError: it is not at hand, or is not what was published."""
    stored = _alone(dataset, member)
    if stored is not None:
        check(stored, official(dataset, member))
        return stored.open()
    archive = _archive(dataset, member)
    if archive is None or (stored := _alone(dataset, archive.member)) is None:
        raise _missing(dataset, member)
    digest = check(stored, archive)
    return archives.member(stored.place, digest, DATASETS[dataset].archives[archive.member], member)


def contents(dataset: str, archive: str) -> Iterator[tuple[str, bytes]]:
    """The names and the contents of all files in a published archive, in its order, one held at a time.

    Raises:
        DataError: it is not at hand, or is not what was published."""
    stored = _alone(dataset, archive)
    if stored is None:
        raise _missing(dataset, archive)
    check(stored, official(dataset, archive))
    yield from archives.contents(stored.place)


def read_text(dataset: str, member: str) -> str:
    """A member of a data set as text.

    Raises:
        DataError: it is not at hand, is not what was published, or no text."""
    with open_binary(dataset, member) as stream:
        try:
            return stream.read().decode("utf-8")
        except UnicodeDecodeError as error:
            raise mistakes.not_text(_place(dataset, member), error) from error


def lines(dataset: str, member: str) -> Iterator[str]:
    """The lines of a member of a data set, without their ends.

    Raises:
        DataError: it is not at hand, is not what was published, or no text."""
    # Not every sign that ends a line of text ends one of a file.
    with io.TextIOWrapper(open_binary(dataset, member), encoding="utf-8", newline="\n") as text:
        try:
            for line in text:
                yield line.removesuffix("\n")
        except UnicodeDecodeError as error:
            raise mistakes.not_text(_place(dataset, member), error) from error


def at_hand(file: OfficialFile) -> Path | None:
    """Where a published file is, whatever it holds."""
    stored = _alone(file.dataset, file.member)
    return None if stored is None else stored.place


def verify(file: OfficialFile, *, anew: bool = True) -> tuple[Path, Digest] | None:
    """Compares a published file with its digest, which is taken `anew` unless it may be remembered. Where the file is,
    and its digest; None if it is not at hand.

    Raises:
        DataError: it is not what was published."""
    stored = _alone(file.dataset, file.member)
    return None if stored is None else (stored.place, check(stored, file, anew=anew))


def check(stored: Stored, published: OfficialFile | None, *, anew: bool = False) -> Digest:
    """The digest of a file, which is that of the published one if that is known, or the one that it was pinned to.

    Of other files it is at least seen that they can be unpacked.

    Raises:
        DataError: it is not what was published."""
    expected = published.digest if published is not None else None
    expected = expected or pinned(stored.place)
    if expected is None:
        return digest_of(stored, anew=anew)
    found = digest_of(stored, expected.rule, anew=anew)
    if found != expected:
        raise mistakes.damaged(stored.place, found, expected)
    return found


def pin_of(place: Path) -> Path:
    """Where the digest stands that a file must have of which none was published: as `sha256sum` writes it."""
    return place.with_name(f"{place.name}.sha256")


def pinned(place: Path) -> Digest | None:
    """The digest that a file is pinned to."""
    try:
        return Digest.parse(f"{Rule.SHA256.value}:{pin_of(place).read_text(encoding='utf-8').split()[0].lower()}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, IndexError) as error:
        raise mistakes.unreadable(pin_of(place), error) from error


def _alone(dataset: str, member: str) -> Stored | None:
    wanted = folder() / dataset / member
    found = (Stored(wanted.with_name(f"{wanted.name}{ending}"), ending) for ending in ENDINGS)
    return next((stored for stored in found if stored.place.is_file()), None)


def _archive(dataset: str, member: str) -> OfficialFile | None:
    known = DATASETS.get(dataset)
    return None if known is None else known.archive_of(member)


def _place(dataset: str, member: str) -> Path:
    return find(dataset, member) or folder() / dataset / member


def _missing(dataset: str, member: str) -> mistakes.MissingError:
    source = official(dataset, member) or _archive(dataset, member)
    known = None if source is None else (source.stored, source.digest)
    return mistakes.missing(dataset, member, folder() / dataset / member, known)
