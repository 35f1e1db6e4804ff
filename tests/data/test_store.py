"""A published file is read plain, compressed or from its archive; a damaged file is never read."""

import gzip
import hashlib
import io
import lzma
import tarfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from archlang.data import registry, store
from archlang.data.mistakes import DamagedError, DataError, MissingError
from archlang.data.registry import Dataset, Held

TEXT = "IN: jump OUT: I_JUMP\nIN: läuft OUT: \u2028\n"
CONTENT = TEXT.encode()
OTHER = b"something else\n"
DIGEST = f"sha256:{hashlib.sha256(CONTENT).hexdigest()}"


def packed(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


ARCHIVE = packed({"words-1.0/en/a.txt": CONTENT, "words-1.0/README": b"read me", "words-1.0/en/b.txt": OTHER})


@pytest.fixture(autouse=True)
def words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces the registry by a data set of a file and an archive."""
    archive = f"sha256:{hashlib.sha256(ARCHIVE).hexdigest()}"
    lines = [
        ("words", "text.txt", str(len(CONTENT)), DIGEST, "text.txt"),
        ("words", "words.tar.gz", str(len(ARCHIVE)), archive, "words.tar.gz"),
    ]
    monkeypatch.setattr(registry, "_lines", lambda: lines)
    dataset = Dataset(
        "words", "words", (), "http://nowhere", "none", "http://nowhere", {"words.tar.gz": (Held("en/", ""),)}
    )
    datasets = MappingProxyType({"words": dataset})
    monkeypatch.setattr(registry, "DATASETS", datasets)
    monkeypatch.setattr(store, "DATASETS", datasets)


def text_of(dataset: str, member: str) -> str:
    return "\n".join(store.lines(dataset, member)) + "\n"


def put(folder: Path, name: str, content: bytes) -> Path:
    place = folder / "words" / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    return place


def read(member: str) -> bytes:
    with store.open_binary("words", member) as stream:
        return stream.read()


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_a_file_may_be_compressed(folder: Path, ending: str, pack: object) -> None:
    assert callable(pack)
    place = put(folder, f"text.txt{ending}", pack(CONTENT))
    assert store.find("words", "text.txt") == place
    assert text_of("words", "text.txt") == TEXT
    assert read("text.txt") == CONTENT


def test_only_line_feeds_end_lines(folder: Path) -> None:
    put(folder, "text.txt", CONTENT)
    assert list(store.lines("words", "text.txt")) == TEXT.split("\n")[:-1]


@pytest.mark.parametrize("content", [CONTENT[:-1], OTHER, b"", CONTENT[:5] + b"X" + CONTENT[6:]])
def test_a_truncated_replaced_or_damaged_file_is_refused_by_name_and_digest(folder: Path, content: bytes) -> None:
    place = put(folder, "text.txt", content)
    for opened in (store.open_binary, text_of):
        with pytest.raises(DamagedError) as error:
            opened("words", "text.txt")
        assert str(place) in error.value.message
        assert DIGEST in error.value.message
        assert hashlib.sha256(content).hexdigest() in error.value.message


def test_not_even_the_first_line_of_a_damaged_file_is_used(folder: Path) -> None:
    put(folder, "text.txt", CONTENT + b"more")
    with pytest.raises(DamagedError):
        next(store.lines("words", "text.txt"))


@pytest.mark.parametrize(("ending", "pack"), [(".xz", lzma.compress), (".gz", gzip.compress)])
def test_a_truncated_compressed_file_is_refused(folder: Path, ending: str, pack: object) -> None:
    assert callable(pack)
    place = put(folder, f"text.txt{ending}", pack(CONTENT)[:-12])
    with pytest.raises(DataError, match="cannot be decompressed|is not the published file") as error:
        text_of("words", "text.txt")
    assert str(place) in error.value.message


def test_the_error_for_a_missing_file_names_its_path_and_digest(folder: Path) -> None:
    with pytest.raises(MissingError) as error:
        text_of("words", "text.txt")
    assert "archlang data get words" in error.value.remedy
    assert str(folder / "words") in error.value.remedy
    assert DIGEST in error.value.remedy


def test_members_of_an_archive_are_read_from_it(folder: Path) -> None:
    place = put(folder, "words.tar.gz", ARCHIVE)
    assert store.find("words", "a.txt") == place
    assert (read("a.txt"), read("b.txt")) == (CONTENT, OTHER)


def test_a_separate_member_has_precedence_over_the_archive(folder: Path) -> None:
    put(folder, "words.tar.gz", ARCHIVE)
    put(folder, "a.txt", b"mine")
    assert read("a.txt") == b"mine"


def test_a_replaced_archive_is_refused_before_it_is_unpacked(folder: Path, tmp_path: Path) -> None:
    put(folder, "words.tar.gz", packed({"en/a.txt": OTHER}))
    with pytest.raises(DamagedError, match="words.tar.gz is not the published file"):
        store.open_binary("words", "a.txt")
    assert not (tmp_path / "cache" / "unpacked").exists()


def test_contents_yields_all_files_in_order(folder: Path) -> None:
    put(folder, "words.tar.gz", ARCHIVE)
    names = [name for name, _ in store.contents("words", "words.tar.gz")]
    assert names == ["words-1.0/en/a.txt", "words-1.0/README", "words-1.0/en/b.txt"]


def test_bytes_that_are_not_utf_8_are_refused(folder: Path) -> None:
    put(folder, "unknown.txt", b"\xff\xfe\n")
    with pytest.raises(DataError, match=r"unknown\.txt is not UTF-8 text"):
        text_of("words", "unknown.txt")
    with pytest.raises(DataError, match=r"unknown\.txt is not UTF-8 text"):
        list(store.lines("words", "unknown.txt"))


def test_a_changed_pinned_file_is_refused(folder: Path) -> None:
    place = put(folder, "unknown.txt", b"first")
    store.pin_of(place).write_text(f"{hashlib.sha256(b'first').hexdigest()}  unknown.txt\n")
    assert list(store.lines("words", "unknown.txt")) == ["first"]
    place.write_bytes(b"second")
    with pytest.raises(DamagedError):
        text_of("words", "unknown.txt")
    store.pin_of(place).write_text("nonsense")
    with pytest.raises(DataError, match="cannot be read"):
        text_of("words", "unknown.txt")


def test_without_archlang_data_files_are_in_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ARCHLANG_DATA")
    assert store.folder() == tmp_path / "cache" / "data"
