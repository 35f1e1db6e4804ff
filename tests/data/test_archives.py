"""Published archives cannot write or read outside of their folder."""

import hashlib
import io
import random
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from archlang.data import archives
from archlang.data.mistakes import DataError
from archlang.data.registry import Digest, Held

ALL = (Held("", ""),)


def entry(name: str, content: bytes = b"", kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, target, len(content)
    return info


def archive(place: Path, entries: Mapping[tarfile.TarInfo, bytes], mode: str = "w:gz") -> tuple[Path, Digest]:
    with tarfile.open(place, mode=mode) as tar:  # type: ignore[call-overload] # a mode of tarfile's
        for info, content in entries.items():
            tar.addfile(info, io.BytesIO(content))
    return place, Digest.parse(f"sha256:{hashlib.sha256(place.read_bytes()).hexdigest()}")


@pytest.mark.parametrize("name", ["../out.txt", "/etc/out.txt", "a/../../out.txt", "..\\out.txt", "C:\\out.txt"])
def test_a_name_outside_of_the_archive_is_refused_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    place, digest = archive(tmp_path / "bad.tar.gz", {entry(name, b"x"): b"x"})
    assert not archives.safe(name)
    with pytest.raises(DataError, match="names a file outside of itself"):
        list(archives.contents(place))
    with pytest.raises(DataError, match="names a file outside of itself"):
        archives.member(place, digest, ALL, "out.txt")
    assert not list(tmp_path.rglob("out.txt"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_links_devices_and_folders_are_skipped(tmp_path: Path, kind: bytes) -> None:
    entries = {entry("link", kind=kind, target="/etc/passwd"): b"", entry("text", b"x"): b"x"}
    place, digest = archive(tmp_path / "odd.tar.gz", entries)
    assert list(archives.contents(place)) == [("text", b"x")]
    with pytest.raises(DataError, match="has no file link"):
        archives.member(place, digest, ALL, "link")


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
def test_an_archive_may_have_any_compression_of_tar(tmp_path: Path, mode: str) -> None:
    place, digest = archive(tmp_path / "good.tar", {entry("a/text", b"content"): b"content"}, mode)
    with archives.member(place, digest, (Held("a/", "b/"),), "b/text") as stream:
        assert stream.read() == b"content"


@pytest.mark.parametrize("end", [0, 10, 400, -200])
def test_a_truncated_archive_is_an_error_and_leaves_nothing(tmp_path: Path, end: int) -> None:
    # Of what hardly packs, the end is cut, and not what only fills the archive.
    content = random.Random(0).randbytes(10_000)
    place, digest = archive(tmp_path / "cut.tar.gz", {entry("text", content): content})
    place.write_bytes(place.read_bytes()[:end])
    with pytest.raises(DataError, match=r"cut\.tar\.gz (cannot be decompressed|has no file)"):
        archives.member(place, digest, ALL, "text")
    unpacked = tmp_path / "cache" / "unpacked"
    assert not list(unpacked.rglob("text")) if unpacked.exists() else True


def test_a_changed_unpacked_file_is_unpacked_again(tmp_path: Path) -> None:
    place, digest = archive(tmp_path / "good.tar.gz", {entry("text", b"content"): b"content"})
    archives.member(place, digest, ALL, "text").close()
    (unpacked,) = (tmp_path / "cache" / "unpacked").rglob("text")
    unpacked.write_bytes(b"changed")
    with archives.member(place, digest, ALL, "text") as stream:
        assert stream.read() == b"content"


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, digest = archive(tmp_path / "good.tar.gz", {entry("text", b"content"): b"content"})

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(DataError, match="No space left on device"):
        archives.member(place, digest, ALL, "text")
    assert not list((tmp_path / "cache").rglob("text"))
