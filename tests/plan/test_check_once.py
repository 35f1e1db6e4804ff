"""A program without mistakes is checked again only if a text that the check has read has changed."""

from pathlib import Path

import pytest

from archlang.diagnostics import Diagnostic
from archlang.names.resolve import Loader
from archlang.plan import check as check_module
from archlang.plan import check_once as module
from archlang.plan.check_once import check_once

_LAYER = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
_PROGRAM = 'use "./layer.arch"\nblock twice(h: seq[n, d]) -> seq[n, d] {\n    return layer(layer(h))\n}\n'
_WITH_DATA = """
model small(x: tokens[n]) -> logits[classes] {
    return embed[4](x) |> last |> linear[classes]
}
recipe r {
    task  file[path = "words.tsv"]
    model small
    train adamw[steps = 1]
}
"""
_WARNED = "block layer(h: seq[n, d]) -> seq[n, d] {\n    a = norm(h)\n    return h\n}\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "layer.arch").write_text(_LAYER)
    (folder / "program.arch").write_text(_PROGRAM)
    return folder / "program.arch"


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> list[Path | str]:
    """The paths of the programs that are checked."""
    paths: list[Path | str] = []
    check_with = check_module.check_with

    def note(loader: Loader, path: Path | str) -> tuple[Diagnostic, ...]:
        paths.append(path)
        return check_with(loader, path)

    monkeypatch.setattr(check_module, "check_with", note)
    return paths


def _codes(path: Path, *allow: Path) -> list[str]:
    return [diagnostic.code for diagnostic in check_once(path, allow)]


def test_an_unchanged_program_without_mistakes_is_not_checked_again(program: Path, checked: list[Path | str]) -> None:
    assert (_codes(program), _codes(program)) == ([], [])
    assert checked == [program]


def test_its_path_may_be_written_in_another_way(
    program: Path, checked: list[Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(program.parent)
    assert _codes(Path("program.arch")) == []
    monkeypatch.chdir(program.parent.parent)
    assert _codes(program) == []
    assert len(checked) == 1


def test_a_changed_program_is_checked_again(program: Path) -> None:
    assert _codes(program) == []
    program.write_text(_PROGRAM.replace("layer(h)", "leyar(h)"))
    assert _codes(program) == ["E0202"]


def test_a_changed_text_of_a_used_file_is_checked_again(program: Path) -> None:
    assert _codes(program) == []
    (program.parent / "layer.arch").write_text(_LAYER.replace("layer", "sheet"))
    assert _codes(program) == ["E0202", "E0202"]


def test_a_missing_used_file_is_a_mistake(program: Path) -> None:
    assert _codes(program) == []
    (program.parent / "layer.arch").unlink()
    assert _codes(program) == ["E0208"]


def test_a_used_file_that_became_a_link_to_an_equal_text_elsewhere_is_refused(program: Path) -> None:
    assert _codes(program) == []
    layer = program.parent / "layer.arch"
    layer.rename(program.parent.parent / "layer.arch")
    layer.symlink_to("../layer.arch")
    assert _codes(program) == ["E0233"]


def test_a_file_of_an_allowed_folder_is_refused_without_the_folder(program: Path) -> None:
    elsewhere = program.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (program.parent / "layer.arch").rename(elsewhere / "layer.arch")
    program.write_text(_PROGRAM.replace("./", "../elsewhere/"))
    assert _codes(program, elsewhere) == []
    assert _codes(program) == ["E0233"]


def test_a_program_with_a_warning_is_checked_every_time(program: Path) -> None:
    program.write_text(_WARNED)
    assert _codes(program) == _codes(program) == ["W0201"]


def test_a_data_file_that_became_a_link_to_elsewhere_is_refused(program: Path, checked: list[Path | str]) -> None:
    program.write_text(_WITH_DATA)
    assert (_codes(program), _codes(program)) == ([], [])
    assert len(checked) == 1
    (program.parent / "words.tsv").symlink_to("../words.tsv")
    assert _codes(program) == ["E0316"]


def test_another_archlang_checks_again(
    program: Path, checked: list[Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _codes(program) == []
    monkeypatch.setattr(module, "_checker", lambda: "another")
    assert _codes(program) == []
    assert len(checked) == 2


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"checker": 1}', "\x00", "[" * 10_000])
def test_a_damaged_record_does_not_count(program: Path, checked: list[Path | str], damage: str) -> None:
    assert _codes(program) == []
    (record,) = (program.parent.parent / "cache" / "checked").iterdir()
    record.write_text(damage)
    program.write_text(_PROGRAM.replace("layer(h)", "leyar(h)"))
    assert _codes(program) == ["E0202"]


def test_without_a_cache_folder_every_program_is_checked(
    program: Path, checked: list[Path | str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(program))  # a file
    assert (_codes(program), _codes(program)) == ([], [])
    assert len(checked) == 2
