"""Required files are unique, missing and published."""

from pathlib import Path

import pytest

from archlang.data.mistakes import DataError
from archlang.data.store import absent, dataset, required


def test_members_of_one_archive_require_it_once() -> None:
    wanted = absent([("cfq", "dataset.json"), ("cfq", "splits/mcd1.json"), ("scan", "tasks.txt")])
    assert [file.member for file in wanted] == ["cfq.tar.gz", "tasks.txt"]


def test_present_and_unknown_files_are_not_required(folder: Path) -> None:
    (folder / "scan").mkdir(parents=True)
    (folder / "scan" / "tasks.txt.xz").write_bytes(b"")
    assert absent([("scan", "tasks.txt"), ("scan", "mine.txt"), ("mine", "tasks.txt")]) == ()


def test_a_data_set_has_all_its_files_or_those_that_are_named() -> None:
    assert len(required("scan")) == 5
    assert [file.member for file in required("cogs", ["gen.tsv"])] == ["gen.tsv"]
    assert [file.member for file in required("cfq", ["splits/mcd1.json", "dataset.json"])] == ["cfq.tar.gz"]


def test_similar_names_are_suggested() -> None:
    with pytest.raises(DataError, match=r"there is no data set `scann`: did you mean `scan`\?"):
        dataset("scann")
    with pytest.raises(DataError, match=r"cogs has no file `trian.tsv`: did you mean `train.tsv`\?"):
        required("cogs", ["trian.tsv"])
