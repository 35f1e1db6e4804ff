"""The local files of published data sets: their paths and their contents.

    folder()                          ARCHLANG_DATA, or `data` in the cache folder
    find("scan", "tasks.txt")         the file that contains the member, or None
    open_binary("scan", "tasks.txt")  its content

A file may be compressed with xz or gzip, or be in the archive that it was published in. Its digest is compared with the
published one before its first byte is used."""

import io
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from archlang.data import archives, mistakes
from archlang.data.registry import DATASETS, Dataset, Digest, DigestRule, OfficialFile, official
from archlang.data.stored import ENDINGS, Stored, digest_of
from archlang.disk.cache_folder import cache_folder


def folder() -> Path:
    """Returns the folder of published files, with a folder for each data set.

    Raises:
        DataError: there is no such folder, and no cache folder."""
    path = os.environ.get("ARCHLANG_DATA")
    try:
        return (Path(path).expanduser() if path else cache_folder() / "data").absolute()
    except (OSError, RuntimeError) as error:
        raise mistakes.no_folder(error) from error


def find(dataset: str, member: str) -> Path | None:
    """Returns the file that contains a member of a data set: the member, compressed or not, or its archive. None if it
    is missing."""
    archive = _archive(dataset, member)
    stored = _local(dataset, member) or (None if archive is None else _local(dataset, archive.member))
    return None if stored is None else stored.place


def open_binary(dataset: str, member: str) -> BinaryIO:
    """Opens the content of a member of a data set.

    Raises:
        DataError: the file is missing or damaged."""
    stored = _local(dataset, member)
    if stored is not None:
        check(stored, official(dataset, member))
        return stored.open()
    archive = _archive(dataset, member)
    if archive is None or (stored := _local(dataset, archive.member)) is None:
        raise _missing(dataset, member)
    digest = check(stored, archive)
    return archives.member(stored.place, digest, DATASETS[dataset].archives[archive.member], member)


def contents(dataset: str, archive: str) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of every file in a published archive, in its order, with one in memory at a time.

    Raises:
        DataError: the archive is missing or damaged."""
    stored = _local(dataset, archive)
    if stored is None:
        raise _missing(dataset, archive)
    check(stored, official(dataset, archive))
    yield from archives.contents(stored.place)


def lines(dataset: str, member: str) -> Iterator[str]:
    """Yields the lines of a member of a data set, without line ends.

    Raises:
        DataError: the file is missing, damaged, or not UTF-8."""
    # `newline="\n"`: str.splitlines would also break at U+2028 and others.
    with io.TextIOWrapper(open_binary(dataset, member), encoding="utf-8", newline="\n") as text:
        try:
            for line in text:
                yield line.removesuffix("\n")
        except UnicodeDecodeError as error:
            raise mistakes.not_text(_place(dataset, member), error) from error


def verify(file: OfficialFile, *, anew: bool = True) -> tuple[Path, Digest] | None:
    """Compares a published file with its digest, which is computed `anew` or taken from the cache. Returns the path and
    the digest; None if the file is missing.

    Raises:
        DataError: the file is damaged."""
    stored = _local(file.dataset, file.member)
    return None if stored is None else (stored.place, check(stored, file, anew=anew))


def check(stored: Stored, published: OfficialFile | None, *, anew: bool = False) -> Digest:
    """Verifies a file against its published digest, or else against the digest that it is pinned to. Returns the
    digest.

    Without either, it checks only that the file can be decompressed.

    Raises:
        DataError: the digest differs, or the file cannot be decompressed."""
    expected = published.digest if published is not None else None
    expected = expected or pinned(stored.place)
    if expected is None:
        return digest_of(stored, anew=anew)
    digest = digest_of(stored, expected.rule, anew=anew)
    if digest != expected:
        raise mistakes.damaged(stored.place, digest, expected)
    return digest


def pin_of(place: Path) -> Path:
    """Returns the path of the pinned digest of a file without a published one, in the format of `sha256sum`."""
    return place.with_name(f"{place.name}.sha256")


def pinned(place: Path) -> Digest | None:
    """Returns the digest that a file is pinned to; None if it is not pinned."""
    try:
        return Digest.parse(f"{DigestRule.SHA256.value}:{pin_of(place).read_text(encoding='utf-8').split()[0].lower()}")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, IndexError) as error:
        raise mistakes.unreadable(pin_of(place), error) from error


def _local(dataset: str, member: str) -> Stored | None:
    path = folder() / dataset / member
    candidates = (Stored(path.with_name(f"{path.name}{ending}"), ending) for ending in ENDINGS)
    return next((stored for stored in candidates if stored.place.is_file()), None)


def _archive(dataset: str, member: str) -> OfficialFile | None:
    published = DATASETS.get(dataset)
    return None if published is None else published.archive_of(member)


def _place(dataset: str, member: str) -> Path:
    return find(dataset, member) or folder() / dataset / member


def _missing(dataset: str, member: str) -> mistakes.MissingError:
    source = official(dataset, member) or _archive(dataset, member)
    published = None if source is None else (source.stored, source.digest)
    return mistakes.missing(dataset, member, folder() / dataset / member, published)


# The files that must be fetched before members of data sets can be read


def dataset(name: str) -> Dataset:
    """Returns a published data set.

    Raises:
        DataError: there is no data set of this name."""
    if name not in DATASETS:
        raise mistakes.unknown_dataset(name, sorted(DATASETS))
    return DATASETS[name]


def required(name: str, members: Iterable[str] = ()) -> tuple[OfficialFile, ...]:
    """Returns the files of a data set: all of them, or those that contain these members, each once.

    Raises:
        DataError: there is no such data set or member."""
    published = dataset(name)
    members = tuple(members)
    if not members:
        return published.files
    required: dict[str, OfficialFile] = {}
    for member in members:
        file = published.file(member) or published.archive_of(member)
        if file is None:
            raise mistakes.unknown_member(name, member, [file.member for file in published.files])
        required[file.member] = file
    return tuple(required.values())


def absent(reads: Iterable[tuple[str, str]]) -> tuple[OfficialFile, ...]:
    """Returns the missing published files that contain these members, each once. Skips members of unpublished data
    sets, which cannot be fetched."""
    missing: dict[tuple[str, str], OfficialFile] = {}
    for name, member in reads:
        if find(name, member) is not None or name not in DATASETS:
            continue
        file = official(name, member) or DATASETS[name].archive_of(member)
        if file is not None:
            missing[file.dataset, file.member] = file
    return tuple(missing.values())
