"""A program names only files in its folder; paths on the command line may be anywhere."""

from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.plan.check import check
from archlang.plan.from_file import bind_task, plan_recipe

PROGRAM = """
model small[d = 4](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> last |> linear[classes]
}
recipe r {
    task  file[path = "PATH"]
    model small
    train adamw[steps = 1]
}
"""


def program(folder: Path, path: str) -> Path:
    folder.mkdir(exist_ok=True)
    place = folder / "r.arch"
    place.write_text(PROGRAM.replace("PATH", path))
    return place


@pytest.mark.parametrize("path", ["words.tsv", "./words.tsv", "data/words.tsv", "data/../words.tsv"])
def test_a_file_is_seen_from_the_folder_of_the_program(tmp_path: Path, path: str) -> None:
    resolved = plan_recipe(program(tmp_path / "a", path)).settings["task.path"]
    assert resolved == str((tmp_path / "a" / path).resolve())


@pytest.mark.parametrize(
    "path", ["../words.tsv", "/etc/passwd", "a/../../words.tsv", "..", "link/words.tsv", "linked.tsv"]
)
def test_a_file_elsewhere_is_refused_also_behind_a_link(tmp_path: Path, path: str) -> None:
    place = program(tmp_path / "a", path)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "words.tsv").write_text("text\tlabel\n")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "b")
    (tmp_path / "a" / "linked.tsv").symlink_to(tmp_path / "b" / "words.tsv")
    assert [diagnostic.code for diagnostic in check(place)] == ["E0316"]
    with pytest.raises(ProgramError):
        plan_recipe(place)


def test_the_command_line_may_name_any_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    place = program(tmp_path / "a", "words.tsv")
    assert plan_recipe(place, None, {"task.path": '"../b.tsv"'}).settings["task.path"] == str(tmp_path.parent / "b.tsv")
    assert bind_task('file[path = "/c.tsv"]').statics["path"] == "/c.tsv"
    assert bind_task("file", {"path": '"d.tsv"'}).statics["path"] == str(tmp_path / "d.tsv")


def test_a_path_is_a_text_in_quotes(tmp_path: Path) -> None:
    place = program(tmp_path / "a", "x")
    place.write_text(place.read_text().replace('"x"', "words"))
    (diagnostic,) = check(place)
    assert diagnostic.code == "E0303"
    assert "in quotes" in diagnostic.remedy


def test_a_task_without_its_file_is_refused(tmp_path: Path) -> None:
    place = program(tmp_path / "a", "")
    assert [diagnostic.code for diagnostic in check(place)] == ["E0304"]
