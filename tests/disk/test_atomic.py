"""Files and folders appear complete or not at all."""

from pathlib import Path

import pytest

from archlang.disk.folder import atomic_folder, remove_folder, write_atomically


def test_a_folder_appears_when_it_is_finished(tmp_path: Path) -> None:
    with atomic_folder(tmp_path / "new") as unfinished:
        (unfinished / "a").write_text("1")
        assert not (tmp_path / "new").exists()
    assert (tmp_path / "new" / "a").read_text() == "1"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_failed_folder_leaves_the_existing_one(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "old").write_text("0")

    def fail() -> None:
        with atomic_folder(tmp_path / "place") as unfinished:
            (unfinished / "new").write_text("1")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["place", "place/old"]


@pytest.mark.parametrize(("overwrite", "expected"), [(True, "new"), (False, "old")])
def test_overwriting_decides_which_folder_stays(overwrite: bool, expected: str, tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "file").write_text("old")
    with atomic_folder(tmp_path / "place", overwrite=overwrite) as unfinished:
        (unfinished / "file").write_text("new")
    assert (tmp_path / "place" / "file").read_text() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_failed_write_leaves_the_old_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_atomically(tmp_path / "file", "old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(tmp_path / "file", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("file", "old")]


def test_a_rewritten_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o640)
    write_atomically(tmp_path / "file", "new")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640


def test_a_removed_folder_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "place" / "inner").mkdir(parents=True)
    remove_folder(tmp_path / "place")
    remove_folder(tmp_path / "missing")
    assert not list(tmp_path.iterdir())


def test_a_link_is_replaced_and_its_target_unchanged(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    write_atomically(tmp_path / "link", "new")
    assert (tmp_path / "target").read_text() == "old"
    assert not (tmp_path / "link").is_symlink()
