"""Digests of files on disk, each taken once: what was found is remembered until the file changes.

A file counts as unchanged while its size, its times and its inode are. `archlang data verify` asks no memory."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from pathlib import Path

from archlang.data.compression import Stored, reading
from archlang.data.digests import Digest, Rule, take
from archlang.files.atomic import write_atomically
from archlang.source.cache_folder import cache_folder

# Smaller files are read faster than they are looked up.
_SMALL = 1 << 20


def digest_of(stored: Stored, rule: Rule = Rule.SHA256, *, anew: bool = False) -> Digest:
    """The digest of what a file holds.

    Raises:
        DataError: it cannot be read or unpacked."""
    with reading(stored.place):
        state = _state(stored.place)
    large = state[0] >= _SMALL
    known = _remembered(stored, rule, state) if large and not anew else None
    if known is not None:
        return known
    size = stored.size() if rule is Rule.GITBLOB else 0
    with stored.open() as stream, reading(stored.place):
        found = take(rule, stream, size)
    if large:
        _remember(stored, rule, state, found)
    return found


def _state(place: Path) -> list[int]:
    found = place.stat()
    return [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]


def _note(stored: Stored, rule: Rule) -> Path:
    key = hashlib.sha256(f"{stored.place.resolve()}\0{stored.ending}\0{rule.value}".encode()).hexdigest()[:32]
    return cache_folder() / "digests" / f"{key}.json"


def _remembered(stored: Stored, rule: Rule, state: list[int]) -> Digest | None:
    try:
        kept = json.loads(_note(stored, rule).read_text(encoding="utf-8"))
        return Digest.parse(kept["digest"]) if kept["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _remember(stored: Stored, rule: Rule, state: list[int], digest: Digest) -> None:
    """A cache that cannot be written costs time only."""
    with suppress(OSError):
        note = _note(stored, rule)
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps({"digest": str(digest), "state": state}), durable=False)
