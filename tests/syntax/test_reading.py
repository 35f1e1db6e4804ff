"""Files are read, and unreadable files are reported."""

import os
from pathlib import Path

import pytest

from archlang.errors import Diagnostic, ProgramError
from archlang.errors.exchange import to_json
from archlang.errors.render import plain
from archlang.syntax.reading import LARGEST, read


def mistake(path: str | Path) -> Diagnostic:
    with pytest.raises(ProgramError) as caught:
        read(path)
    (diagnostic,) = caught.value.diagnostics
    for show in (plain, to_json):
        assert show([diagnostic]).encode("utf-8")
    return diagnostic


def test_a_file_is_read_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "a.arch"
    file.write_bytes("use ä\r\n".encode())
    source = read(file)
    assert (source.path, source.text) == (str(file), "use ä\r\n")


def test_a_byte_order_mark_is_not_part_of_the_text(tmp_path: Path) -> None:
    file = tmp_path / "a.arch"
    file.write_bytes(b"\xef\xbb\xbfuse a")
    assert read(file).text == "use a"


def test_a_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "a.arch"
    diagnostic = mistake(file)
    assert (diagnostic.code, diagnostic.message) == (
        "E0108",
        f"the file `{file}` cannot be read: there is no such file",
    )
    assert diagnostic.span.source.path == str(file)


def test_a_folder(tmp_path: Path) -> None:
    diagnostic = mistake(tmp_path)
    assert (diagnostic.code, diagnostic.message) == ("E0108", f"the file `{tmp_path}` cannot be read: it is a folder")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device on this platform")
def test_a_device_without_end() -> None:
    assert mistake("/dev/zero").message == "the file `/dev/zero` cannot be read: it is not a regular file"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names on this platform")
def test_a_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert mistake(tmp_path / "pipe").code == "E0108"


def test_a_file_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "a.arch"
    file.write_text("use a")
    # The superuser may read everything, so the refusal is played.
    monkeypatch.setattr("builtins.open", refuse)
    assert mistake(file).message.endswith("cannot be read: permission is denied")


@pytest.mark.parametrize("name", ["a\0b", "\udcff", "x" * 5000, ""])
def test_invalid_file_names(name: str) -> None:
    assert mistake(name).code == "E0108"


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    file = tmp_path / "a.arch"
    file.write_bytes("use ä\nuse ".encode() + b"\xff\xfe")
    diagnostic = mistake(file)
    assert diagnostic.code == "E0109"
    assert diagnostic.message == f"the file `{file}` is not UTF-8: byte 11 is invalid"
    assert (diagnostic.span.line, diagnostic.span.column) == (2, 5)


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "a.arch"
    file.write_bytes(b" " * LARGEST)
    assert len(read(file).text) == LARGEST
    file.write_bytes(b" " * (LARGEST + 1))
    assert mistake(file).code == "E0110"
