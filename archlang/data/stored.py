"""Files that may be compressed with gzip, xz or Zstandard, read as their decompressed content."""

import gzip
import hashlib
import json
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from archlang.data import mistakes
from archlang.data.registry import Digest, DigestRule, take
from archlang.disk.cache_folder import own_cache
from archlang.disk.folder import open_path, write_atomically
from archlang.disk.os_errors import os_errors_as
from archlang.disk.readable import open_named, read_named
from archlang.errors.machine import needs_extra


def _open_zst(path: str) -> object:
    with needs_extra("zstd"):
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    return zstd.open(path)


_OPENERS: Mapping[str, Callable[[str], object]] = {".xz": lzma.open, ".gz": gzip.open, ".zst": _open_zst}
ENDINGS = ("", *_OPENERS)
_BROKEN = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stored:
    """A file on disk, and the ending of its compression: one of `ENDINGS`."""

    place: Path
    ending: str = ""

    def open(self) -> BinaryIO:
        """Opens the decompressed content.

        Raises:
            DataError: the file cannot be opened."""
        with reading(self.place):
            file = open_named(self.place)
            if not self.ending:
                return file
            with file:
                return cast(BinaryIO, _OPENERS[self.ending](open_path(file, self.place)))

    def size(self) -> int:
        """Returns the size of the decompressed content in bytes.

        Raises:
            DataError: the file cannot be read or decompressed."""
        with reading(self.place):
            if not self.ending:
                return self.place.stat().st_size
            with self.open() as stream:
                return sum(len(chunk) for chunk in iter(lambda: stream.read(_CHUNK), b""))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises a DataError that names the file if it cannot be read or decompressed."""
    with os_errors_as(mistakes.unreadable, path):
        try:
            yield
        except Exception as error:
            # The module of ZstdError may be missing.
            if not isinstance(error, _BROKEN) and type(error).__name__ != "ZstdError":
                raise
            raise mistakes.not_unpacked(path, error) from error


# Reading smaller files is faster than looking them up.
_SMALL = 1 << 20
_LARGEST = 1 << 16
"""the largest entry, in bytes"""


def digest_of(stored: Stored, rule: DigestRule = DigestRule.SHA256, *, anew: bool = False) -> Digest:
    """Returns the digest of the decompressed content of a file; computes it `anew` or takes it from the cache.

    Raises:
        DataError: the file cannot be read or decompressed."""
    with reading(stored.place):
        state = _state(stored.place)
    large = state[0] >= _SMALL
    cached = _cached(stored, rule, state) if large and not anew else None
    if cached is not None:
        return cached
    size = stored.size() if rule is DigestRule.GITBLOB else 0
    with stored.open() as stream, reading(stored.place):
        digest = take(rule, stream, size)
    if large:
        _store(stored, rule, state, digest)
    return digest


def _state(place: Path) -> list[int]:
    status = place.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _cache_file(stored: Stored, rule: DigestRule) -> Path:
    key = hashlib.sha256(f"{stored.place.resolve()}\0{stored.ending}\0{rule.value}".encode()).hexdigest()[:32]
    return own_cache("digests") / f"{key}.json"


def _cached(stored: Stored, rule: DigestRule, state: list[int]) -> Digest | None:
    try:
        entry = json.loads(read_named(_cache_file(stored, rule), _LARGEST))
        return Digest.parse(entry["digest"]) if entry["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _store(stored: Stored, rule: DigestRule, state: list[int], digest: Digest) -> None:
    """Writes a digest to the cache; ignores a cache that cannot be written."""
    with suppress(OSError):
        write_atomically(_cache_file(stored, rule), json.dumps({"digest": str(digest), "state": state}), durable=False)
