"""Files and folders on the command line."""

from pathlib import Path

import pytest
import typer

from archlang.cli.files import arch_files


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("")


def test_files_stay_in_the_order_in_which_they_are_named() -> None:
    write("b.arch", "a.arch")
    named = [Path("b.arch"), Path("missing.arch"), Path("a.arch")]
    assert arch_files(named) == named


def test_the_programs_of_a_folder_are_sorted_by_path() -> None:
    write("b.arch", "a/c.arch", "a/b/d.arch", "a/notes.md")
    assert arch_files([Path(".")]) == [Path("a/b/d.arch"), Path("a/c.arch"), Path("b.arch")]


def test_hidden_folders_are_skipped_unless_they_are_named() -> None:
    write("a.arch", ".venv/lib/b.arch", "deep/.git/c.arch")
    assert arch_files([Path(".")]) == [Path("a.arch")]
    assert arch_files([Path(".venv")]) == [Path(".venv/lib/b.arch")]


def test_a_folder_may_have_the_name_of_a_program() -> None:
    write("odd.arch/a.arch")
    assert arch_files([Path(".")]) == [Path("odd.arch/a.arch")]


def test_a_folder_without_programs_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    with pytest.raises(typer.Exit) as end:
        arch_files([Path("empty")])
    assert end.value.exit_code == 1
    assert "the folder `empty` contains no .arch file" in capsys.readouterr().err
