"""Archives from the net, read with care: of what they hold only plain files are looked at, and those that lead out of
the archive are refused.

What a data set needs of an archive is unpacked once into the cache folder, with `manifest.json`: the digest of each
file."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from filelock import FileLock

from archlang.data import mistakes
from archlang.data.compression import Stored
from archlang.data.digest_cache import digest_of
from archlang.data.digests import Digest
from archlang.data.registry import Held
from archlang.files.atomic import atomic_folder
from archlang.source.cache_folder import cache_folder

_MANIFEST = "manifest.json"
_CHUNK = 1 << 20


def contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """The names and the contents of all plain files, in the order of the archive.

    Raises:
        DataError: it cannot be unpacked, or names a file outside of itself."""
    for name, stream in _files(place):
        with _unpacking(place):
            content = stream.read()
        yield name, content


def member(place: Path, digest: Digest, holds: Sequence[Held], name: str) -> BinaryIO:
    """A member of a data set from its archive, whose digest is `digest`.

    Raises:
        DataError: the archive does not hold it, or cannot be unpacked."""
    unpacked = _unpacked(place, digest, holds)
    expected = _manifest(unpacked).get(name)
    if expected is None:
        raise mistakes.not_in_archive(place, name)
    file = unpacked / name
    found = digest_of(Stored(file))
    if found.value != expected:
        # What we made ourselves is made again.
        _manifest.cache_clear()
        shutil.rmtree(unpacked, ignore_errors=True)
        file = _unpacked(place, digest, holds) / name
    return file.open("rb")


def _unpacked(place: Path, digest: Digest, holds: Sequence[Held]) -> Path:
    """The folder of what an archive holds, made if it is not there."""
    told = json.dumps([str(digest), [[held.inside, held.member] for held in holds]])
    key = hashlib.sha256(told.encode()).hexdigest()[:32]
    try:
        home = cache_folder() / "unpacked"
        unpacked = home / f"{place.parent.name}-{key}"
        if not (unpacked / _MANIFEST).exists():
            home.mkdir(parents=True, exist_ok=True)
            with FileLock(f"{unpacked}.lock"):
                if not (unpacked / _MANIFEST).exists():
                    _unpack(place, holds, unpacked)
    except OSError as error:
        raise mistakes.no_room(cache_folder(), error.strerror or error) from error
    return unpacked


def _unpack(place: Path, holds: Sequence[Held], unpacked: Path) -> None:
    with atomic_folder(unpacked, durable=False) as unfinished:
        digests: dict[str, str] = {}
        for name, stream in _files(place):
            wanted = _member(name, holds)
            if wanted is None:
                continue
            file = unfinished / wanted
            file.parent.mkdir(parents=True, exist_ok=True)
            whole = hashlib.sha256()
            with file.open("wb") as target:
                while chunk := _read(place, stream):
                    whole.update(chunk)
                    target.write(chunk)
            digests[wanted] = whole.hexdigest()
        (unfinished / _MANIFEST).write_text(json.dumps(digests), encoding="utf-8")


def _read(place: Path, stream: BinaryIO) -> bytes:
    with _unpacking(place):
        return stream.read(_CHUNK)


def _member(name: str, holds: Sequence[Held]) -> str | None:
    """What a file of an archive is called in the data set; None if it has no place there."""
    parts = PurePosixPath(name).parts
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        for held in holds:
            if tail.startswith(held.inside):
                return f"{held.member}{tail.removeprefix(held.inside)}"
    return None


@lru_cache(maxsize=8)
def _manifest(unpacked: Path) -> Mapping[str, str]:
    try:
        found: dict[str, str] = json.loads((unpacked / _MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise mistakes.unreadable(unpacked / _MANIFEST, error) from error
    return found


def _files(place: Path) -> Iterator[tuple[str, BinaryIO]]:
    """The plain files of an archive, each with a stream that must be read before the next one is asked for."""
    with _unpacking(place):
        archive = tarfile.open(place, mode="r|*")  # noqa: SIM115 - closed below, outside of what tells of its mistakes
    with archive:
        while True:
            with _unpacking(place):
                entry = archive.next()
            if entry is None:
                return
            if not safe(entry.name):
                raise mistakes.unsafe_name(place, entry.name)
            # Links, devices and folders are nothing to read.
            if entry.isreg():
                with _unpacking(place):
                    stream = archive.extractfile(entry)
                assert isinstance(stream, io.BufferedReader), "a plain file has content"
                yield entry.name, stream


def safe(name: str) -> bool:
    """Whether a name stays inside the archive: neither absolute, nor upwards, nor of a Windows drive."""
    path = PurePosixPath(name.replace("\\", "/"))
    return not path.is_absolute() and ".." not in path.parts and ":" not in path.parts[0] if path.parts else True


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    """Raises a DataError that names the archive if it cannot be unpacked."""
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise mistakes.not_unpacked(path, error) from error
