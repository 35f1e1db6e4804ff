"""Published archives. Only their regular files are read, and names that lead out of the archive are refused.

The members of a data set are unpacked once into the cache folder, with their digests in `manifest.json`."""

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
from archlang.data.registry import Digest, Held
from archlang.data.stored import Stored, digest_of
from archlang.disk.cache_folder import cache_folder, own_cache
from archlang.disk.folder import atomic_folder
from archlang.disk.limits import LARGEST_JSON
from archlang.disk.readable import read_named

_MANIFEST = "manifest.json"
_CHUNK = 1 << 20


def contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """Yields the name and the content of every regular file, in the order of the archive.

    Raises:
        DataError: the archive cannot be unpacked, or names a file outside of itself."""
    for name, stream in _files(place):
        with _unpacking(place):
            content = stream.read()
        yield name, content


def member(place: Path, digest: Digest, holds: Sequence[Held], name: str) -> BinaryIO:
    """Opens a member of a data set from its archive, whose digest is `digest`.

    Raises:
        DataError: the archive has no such member, or cannot be unpacked."""
    unpacked = _unpacked(place, digest, holds)
    expected = _manifest(unpacked).get(name)
    if expected is None:
        raise mistakes.not_in_archive(place, name)
    file = unpacked / name
    if digest_of(Stored(file)).value != expected:
        # The unpacked file has changed: unpack again.
        _manifest.cache_clear()
        shutil.rmtree(unpacked, ignore_errors=True)
        file = _unpacked(place, digest, holds) / name
    return file.open("rb")


def _unpacked(place: Path, digest: Digest, holds: Sequence[Held]) -> Path:
    facts = json.dumps([str(digest), [[held.inside, held.member] for held in holds]])
    key = hashlib.sha256(facts.encode()).hexdigest()[:32]
    try:
        unpacked = own_cache("unpacked") / f"{place.parent.name}-{key}"
        if not (unpacked / _MANIFEST).exists():
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
            member_name = _member_name(name, holds)
            if member_name is None:
                continue
            file = unfinished / member_name
            file.parent.mkdir(parents=True, exist_ok=True)
            sha256 = hashlib.sha256()
            with file.open("wb") as target:
                while chunk := _read(place, stream):
                    sha256.update(chunk)
                    target.write(chunk)
            digests[member_name] = sha256.hexdigest()
        (unfinished / _MANIFEST).write_text(json.dumps(digests), encoding="utf-8")


def _read(place: Path, stream: BinaryIO) -> bytes:
    with _unpacking(place):
        return stream.read(_CHUNK)


def _member_name(name: str, holds: Sequence[Held]) -> str | None:
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
        digests: dict[str, str] = json.loads(read_named(unpacked / _MANIFEST, LARGEST_JSON))
    except (OSError, ValueError) as error:
        raise mistakes.unreadable(unpacked / _MANIFEST, error) from error
    return digests


def _files(place: Path) -> Iterator[tuple[str, BinaryIO]]:
    """Yields the regular files of an archive, each with a stream that must be read before the next one is requested."""
    with _unpacking(place):
        archive = tarfile.open(place, mode="r|*")  # noqa: SIM115 - closed below, outside of the error handling
    with archive:
        while True:
            with _unpacking(place):
                entry = archive.next()
            if entry is None:
                return
            if not safe(entry.name):
                raise mistakes.unsafe_name(place, entry.name)
            # Skips links, devices and folders.
            if entry.isreg():
                with _unpacking(place):
                    stream = archive.extractfile(entry)
                assert isinstance(stream, io.BufferedReader), "a regular file has content"
                yield entry.name, stream


def safe(name: str) -> bool:
    """Returns whether a name stays inside the archive: not absolute, without `..`, and without a Windows drive."""
    path = PurePosixPath(name.replace("\\", "/"))
    return not path.is_absolute() and ".." not in path.parts and ":" not in path.parts[0] if path.parts else True


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise mistakes.not_unpacked(path, error) from error
