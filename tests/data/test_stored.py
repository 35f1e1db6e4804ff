"""A digest is computed once, and again when the file may have changed."""

import hashlib
import os
from pathlib import Path

import pytest

from archlang.data import registry, stored
from archlang.data.mistakes import DataError
from archlang.data.registry import Digest, DigestRule
from archlang.data.stored import Stored, digest_of

LARGE = b"x" * (1 << 20)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[DigestRule]:
    """Records every computed digest."""
    rules: list[DigestRule] = []

    def counted(rule: DigestRule, *rest: object) -> Digest:
        rules.append(rule)
        return registry.take(rule, *rest)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(stored, "take", counted)
    return rules


@pytest.fixture
def place(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(LARGE)
    return path


def test_a_large_file_is_read_once_per_kind_of_digest(place: Path, taken: list[DigestRule]) -> None:
    for _ in range(2):
        assert digest_of(Stored(place)).value == hashlib.sha256(LARGE).hexdigest()
        digest_of(Stored(place), DigestRule.GITBLOB)
    assert taken == [DigestRule.SHA256, DigestRule.GITBLOB]
    digest_of(Stored(place), anew=True)
    assert taken[2:] == [DigestRule.SHA256]


def test_a_changed_file_is_read_again_even_with_its_old_size_and_time(place: Path, taken: list[DigestRule]) -> None:
    before = place.stat()
    first = digest_of(Stored(place))
    place.write_bytes(b"y" + LARGE[1:])
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert digest_of(Stored(place)) != first


def test_a_malformed_cache_entry_is_ignored(place: Path, tmp_path: Path, taken: list[DigestRule]) -> None:
    first = digest_of(Stored(place))
    for note in (tmp_path / "cache" / "digests").iterdir():
        note.write_text("[]")
    assert digest_of(Stored(place)) == first
    assert len(taken) == 2


def test_an_entry_that_another_user_can_have_written_is_ignored(
    place: Path, tmp_path: Path, taken: list[DigestRule]
) -> None:
    digest_of(Stored(place))
    (tmp_path / "cache" / "digests").chmod(0o777)
    digest_of(Stored(place))
    assert len(taken) == 2


def test_the_error_names_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="gone cannot be read"):
        digest_of(Stored(tmp_path / "gone"))
