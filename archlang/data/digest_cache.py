"""The cache of the digests of large files on disk.

A cached digest is valid while the size, the times and the inode of its file are unchanged. `archlang data verify`
ignores the cache."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from archlang.data.compression import Stored, reading
from archlang.data.digests import Digest, DigestRule, take
from archlang.files.atomic import write_atomically
from archlang.files.readable import read_named
from archlang.source.cache_folder import own_cache

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
