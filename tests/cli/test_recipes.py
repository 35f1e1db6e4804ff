"""The shipped recipe files have names that every command takes, from any folder."""

import json
from pathlib import Path

import pytest

from archlang.names.shipped import recipe_files
from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2] / "recipes"


def test_every_shipped_file_is_listed_with_its_first_sentence(archlang: Command) -> None:
    listed = json.loads(archlang("recipes", "--json").out)
    names = [file.relative_to(ROOT).with_suffix("").as_posix() for file in ROOT.rglob("*.arch")]
    assert sorted(entry["name"] for entry in listed) == sorted(names)
    assert all(entry["summary"].endswith(".") for entry in listed)


@pytest.mark.parametrize("name", ["gutlb", "gutlb.arch", "recipes/gutlb.arch", "papers/ndr/table1"])
def test_a_shipped_file_is_checked_by_its_name(
    name: str, archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert archlang("check", name).out == "1 file, no mistakes\n"


def test_a_file_of_ones_own_comes_before_a_shipped_one(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gutlb").write_text("model", encoding="utf-8")
    assert archlang("check", "gutlb").code == 1


def test_a_misspelt_name_of_a_shipped_file_names_the_nearest(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = archlang("train", "gutl")
    assert (result.code, "no file `gutl`" in result.err, "did you mean `gutlb`?" in result.err) == (1, True, True)


def test_a_copy_is_not_overwritten(archlang: Command, tmp_path: Path) -> None:
    assert "archlang train" in archlang("recipes", "gutlb", "--copy", str(tmp_path)).out
    assert (tmp_path / "gutlb.arch").read_bytes() == recipe_files()["gutlb"].read_bytes()
    second = archlang("recipes", "gutlb", "--copy", str(tmp_path))
    assert (second.code, "nothing was written" in second.err) == (1, True)


def test_an_unknown_recipe_file_names_the_nearest(archlang: Command) -> None:
    assert "did you mean `gutlb` or `gut`?" in archlang("recipes", "gutl").err
