"""Published files of tasks: errors for missing and damaged files, and versions for the cache."""

import os
from pathlib import Path
from typing import NoReturn

import pytest

from archlang.data import store
from archlang.data.mistakes import DataError
from archlang.disk.cache_folder import cache_folder
from archlang.tasks.cogs import Cogs
from archlang.tasks.kit import cache, published_files
from archlang.tasks.kit.split import digest
from archlang.tasks.lra_retrieval import LraRetrieval
from archlang.tasks.scan import Scan
from tests.tasks.every import NAMES, build


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHLANG_DATA", str(tmp_path / "data"))
    (tmp_path / "data" / "scan").mkdir(parents=True)
    return tmp_path / "data"


def test_the_error_for_a_missing_file_names_the_command(folder: Path) -> None:
    with pytest.raises(DataError, match="tasks.txt of scan is missing: run `archlang data get scan`"):
        Scan(split="length", data="files").generate("train", 0)


def test_a_damaged_file_is_refused(folder: Path) -> None:
    (folder / "scan" / "tasks.txt").write_text("IN: jump OUT: I_JUMP\n")
    with pytest.raises(DataError, match="is not the published file"):
        Scan(split="length", data="files").generate("train", 0)


def test_replacing_a_file_changes_its_version(folder: Path) -> None:
    """Covers a file without a published digest."""
    place = folder / "lra" / "tsv_data" / "new_aan_pairs.test.tsv"
    place.parent.mkdir(parents=True)
    task = LraRetrieval()

    def load() -> str:
        return digest(cache.load("lra_retrieval", {}, task, "test", 0))

    place.write_text("1.0\tA\tB\tone\ttwo\n")
    before = load()
    assert load() == before
    assert len(list((cache_folder() / "tasks").iterdir())) == 1
    place.write_text("1.0\tA\tB\tone\tten\n")
    os.utime(place, ns=(0, 1))
    assert load() != before


def test_the_version_of_a_file_with_a_published_digest_is_its_digest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = published_files.versions(Cogs())
    monkeypatch.setenv("ARCHLANG_DATA", str(folder / "elsewhere"))
    assert published_files.versions(Cogs()) == before
    assert len(before) == 4


@pytest.mark.parametrize("name", NAMES)
def test_a_task_reads_only_the_files_that_it_names(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With default statics a task reads its named files, or none."""
    task = build(name)
    named = set(task.reads()) if isinstance(task, published_files.ReadsPublishedFiles) else set()
    asked: list[tuple[str, str]] = []

    def opened(dataset: str, member: str) -> NoReturn:
        asked.append((dataset, member))
        raise DataError("missing", "none")

    monkeypatch.setattr(store, "open_binary", opened)
    monkeypatch.setattr(store, "contents", opened)
    if named:
        with pytest.raises(DataError, match="missing"):
            task.generate("train", 0)
        assert set(asked) <= named
    else:
        assert published_files.versions(task) == []
