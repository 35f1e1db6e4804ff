"""Nothing half written is ever in place."""

from pathlib import Path

import pytest

from archlang.files.atomic import remove_unfinished, whole_folder, write_whole


def test_a_folder_takes_its_place_when_it_is_finished(tmp_path: Path) -> None:
    with whole_folder(tmp_path / "new") as beside:
        (beside / "a").write_text("1")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "a").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_folder_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "old").write_text("0")

    def fail() -> None:
        with whole_folder(tmp_path / "place") as beside:
            (beside / "new").write_text("1")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["place", "place/old"]


def test_a_file_that_fails_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_whole(tmp_path / "file", "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(tmp_path / "file", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_what_a_killed_process_left_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / ".step-7.ab12").mkdir()
    (tmp_path / "step-7").mkdir()
    remove_unfinished(tmp_path, "step-*")
    assert [path.name for path in tmp_path.iterdir()] == ["step-7"]
