"""A folder is opened once; links, pipes and devices inside it are refused, and nothing outside of it is touched."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from archlang.disk import folder as door
from archlang.disk.folder import Folder, atomic_folder, remove_folder, write_atomically
from archlang.disk.mistakes import RefusedFile
from archlang.disk.os_errors import machine_remedy


@pytest.fixture(params=[True, False], ids=["descriptors", "checked names"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    """A folder inside `tmp_path`, opened in both ways."""
    monkeypatch.setattr(door, "_RELATIVE", door._RELATIVE and request.param)
    (tmp_path / "inside").mkdir()
    with Folder.open(tmp_path / "inside") as opened:
        yield opened


def write_through(folder: Folder) -> dict[str, Callable[[str], object]]:
    return {
        "read": lambda name: folder.read(name, 100),
        "write": lambda name: folder.write(name, "new"),
        "append": lambda name: folder.append(name, "new"),
        "truncate": lambda name: folder.truncate(name, 0),
        "lock": lambda name: folder.lock(name),
        "is_locked": lambda name: folder.is_locked(name),
        "flushed_size": lambda name: folder.flushed_size(name),
        "folder": lambda name: folder.folder(name, create=True),
        "inner folder": lambda name: folder.folder(f"{name}/inner", create=True),
        "new_folder": lambda name: folder.new_folder(name).__enter__(),
    }


ACTIONS = list(write_through(Folder(Path(), None)))


@pytest.mark.parametrize("action", ACTIONS)
def test_no_link_is_followed(action: str, folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "victims").mkdir()
    for name, target in (("file", "../victim"), ("folder", "../victims"), ("missing", "../created")):
        (folder.path / name).symlink_to(target)
        with pytest.raises(RefusedFile, match=f"{name} is a link"):
            write_through(folder)[action](name)
    assert (tmp_path / "victim").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["inside", "victim", "victims"]
    assert not os.listdir(tmp_path / "victims")
    assert folder.names() == ["file", "folder", "missing"]


@pytest.mark.parametrize("action", ACTIONS)
def test_a_pipe_is_refused_at_once(action: str, folder: Folder) -> None:
    os.mkfifo(folder.path / "pipe")
    with pytest.raises(RefusedFile, match="pipe is a pipe"):
        write_through(folder)[action]("pipe")


def test_a_link_that_replaces_a_file_between_check_and_use_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "inside").mkdir()
    with Folder.open(tmp_path / "inside") as folder:
        (folder.path / "file").symlink_to("../victim")
        monkeypatch.setattr(Folder, "_status", lambda self, name: None)
        with pytest.raises(OSError, match="symbolic link"):
            folder.append("file", "new")
    assert (tmp_path / "victim").read_text() == "precious"


@pytest.mark.parametrize("name", ["", ".", "..", "../file", "/etc/passwd", "a/b", "a\0b"])
def test_a_name_stays_in_the_folder(name: str, folder: Folder) -> None:
    with pytest.raises(RefusedFile, match="cannot be the path"):
        folder.append(name, "new")


def test_a_path_of_folders_stays_in_the_folder(folder: Folder) -> None:
    with folder.folder("a/b", create=True) as inner:
        inner.write("c", "text")
    assert (folder.path / "a" / "b" / "c").read_text() == "text"
    with pytest.raises(RefusedFile, match="cannot be the path"):
        folder.folder("a/../../other", create=True)


def test_the_user_may_name_a_folder_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with Folder.open(tmp_path / "link") as folder:
        folder.write("file", "text")
    assert (tmp_path / "real" / "file").read_text() == "text"


def test_what_was_written_is_read(folder: Folder) -> None:
    folder.write("file", "first\n")
    folder.append("file", "second\n")
    assert folder.read("file", 100) == b"first\nsecond\n"
    folder.truncate("file", folder.flushed_size("file") - 7)
    assert folder.read("file", 100) == b"first\n"
    assert folder.names() == ["file"]
    assert folder.total_size() == 6


def test_a_larger_file_than_the_limit_is_refused(folder: Folder) -> None:
    folder.write("file", "1234")
    assert folder.read("file", 4) == b"1234"
    with pytest.raises(RefusedFile, match="has 4 bytes; archlang reads up to 3"):
        folder.read("file", 3)


def test_a_file_with_a_second_name_is_not_changed_in_place(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (folder.path / "file").hardlink_to(tmp_path / "victim")
    with pytest.raises(RefusedFile, match="has a second name"):
        folder.append("file", "new")
    with pytest.raises(RefusedFile, match="has a second name"):
        folder.truncate("file", 0)
    folder.write("file", "new")
    assert (tmp_path / "victim").read_text() == "precious"


def test_removing_a_link_leaves_what_it_points_to(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "victims").mkdir()
    (tmp_path / "victims" / "file").write_text("precious")
    (folder.path / "step-1").mkdir()
    (folder.path / "step-1" / "link").symlink_to(tmp_path / "victims")
    (folder.path / "step-2").symlink_to(tmp_path / "victims")
    (folder.path / "step-3").symlink_to(tmp_path / "victims")
    folder.remove("step-1")
    folder.remove("step-2")
    folder.discard("step-3")
    folder.remove("missing")
    assert folder.names() == []
    assert (tmp_path / "victims" / "file").read_text() == "precious"


def test_leftovers_of_killed_processes_are_removed(folder: Folder) -> None:
    (folder.path / ".step-7.ab12.part").mkdir()
    (folder.path / ".step-8.cd34.part").write_text("half")
    (folder.path / "step-7").mkdir()
    folder.remove_unfinished("step-*")
    assert folder.names() == ["step-7"]


def test_the_size_counts_no_links(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "large").write_text("x" * 1000)
    (folder.path / "link").symlink_to(tmp_path / "large")
    (folder.path / "round").symlink_to(".")
    with folder.folder("inner", create=True) as inner:
        inner.write("file", "12345")
    assert folder.total_size() == 5


def test_a_lock_is_held_until_it_is_closed(folder: Folder) -> None:
    assert not folder.is_locked(".lock")
    with folder.lock(".lock"):
        assert folder.is_locked(".lock")
        with pytest.raises(BlockingIOError):
            folder.lock(".lock")
    assert not folder.is_locked(".lock")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no /proc")
def test_a_file_system_that_creates_no_folders_is_of_the_machine() -> None:
    with pytest.raises(OSError, match="its file system creates no folders") as caught:
        Folder.create(Path("/proc/x/y"))
    assert machine_remedy(caught.value) == "choose a folder that you may write to"


# Files and folders appear complete or not at all


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
