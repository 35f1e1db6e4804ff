"""Texts of programs, data and run folders are printed as they are: no markup, no control of the terminal."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Command

ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e"
HOSTILE = f"[/bold] [ours] {ESCAPES}"
PROGRAM = (
    TINY
    + '    claim test.accuracy = 1.00 from "[/bold]"\n'
    + f'    claim test.accuracy[5] = 0.5 from "Smith [ours]{ESCAPES}"\n}}\n'
    + f'table t {{\n    row "=cmd|x [/row]{ESCAPES}" tiny\n    column "[/col]{ESCAPES}" test.accuracy\n}}\n'
)
# Characters that end lines and that rich uses for borders are printable or harmless.
HARMLESS = "\n"


def assert_harmless(*texts: str) -> None:
    for text in texts:
        assert not {character for character in text if not character.isprintable()} - set(HARMLESS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.arch").write_text(PROGRAM, encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("forked_workers")
def test_no_command_interprets_the_texts_of_a_program_or_a_run(archlang: Command, folder: Path) -> None:
    trained = archlang("train", "tiny.arch", "--device", "cpu", "--out", "run[")
    assert trained.code == 0, trained.err
    for expected in ("[/bold]", "Smith [ours]", "run["):
        assert expected in trained.out
    assert_harmless(trained.out, trained.err)
    table = archlang("table", "tiny.arch", "--device", "cpu", "--workers", "1")
    assert table.code == 0, table.err
    assert "[/col]" in table.out
    assert "[/row]" in table.out
    assert_harmless(table.out, table.err)
    for form in ("markdown", "latex", "json"):
        shown = archlang("table", "tiny.arch", "--no-run", "--format", form)
        assert shown.code == 0, shown.err
        assert_harmless(shown.out, shown.err)
    record = json.loads((folder / "run[" / "run.json").read_text())
    record["settings"] |= {HOSTILE: HOSTILE}
    (folder / "run[" / "run.json").write_text(json.dumps(record))
    results = (folder / "run[" / "results.json").read_text()
    (folder / "run[" / "results.json").write_text(results.replace('"test"', json.dumps(HOSTILE)))
    for command in (
        ("runs", "list", "."), ("runs", "show", "run["), ("runs", "compare", "run[", "run["), ("report", "run["),
        ("eval", "run["), ("runs", "show", "run[", "--json"), ("runs", "list", ".", "--json"),
    ):  # fmt: skip
        result = archlang(*command)
        assert result.code != 70, result.err
        assert_harmless(result.out, result.err)


def test_json_output_has_the_exact_texts(archlang: Command, folder: Path) -> None:
    result = archlang("table", "tiny.arch", "--no-run", "--json")
    (cell,) = json.loads(result.out)["cells"]
    assert cell["row"] == f"=cmd|x [/row]{ESCAPES}"
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


COMMANDS = ("check", "fmt", "summary", "table", "train", "viz", "show", "show --tree", "show --torch", "export -o m.py")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_program_with_a_control_character_in_its_name_is_refused(
    archlang: Command, folder: Path, command: str
) -> None:
    for name in (f"[x]{ESCAPES}.arch", "m\nprint(1)\n#.arch", "m\r.arch", "m\t.arch"):
        (folder / name).write_text(PROGRAM)
        result = archlang(*command.split(), name)
        assert result.code == 1
        assert "its name has a control character" in result.err + result.out
        assert_harmless(result.out, result.err)


def test_a_missing_file_with_escapes_in_its_name_is_reported_visibly(archlang: Command, folder: Path) -> None:
    for command in ("check", "show", "train", "table", "report", "eval", "summary", "viz", "fmt"):
        result = archlang(command, f"[bold]{ESCAPES}.arch")
        assert result.code not in (0, 70), (command, result.err)
        assert_harmless(result.out, result.err)


def test_data_show_prints_rows_visibly(archlang: Command, folder: Path) -> None:
    lines = [f"[/col] {HOSTILE} {number}\t[/label]\x1b[2J" for number in range(9)]
    (folder / "rows.tsv").write_text("\n".join(["text\tlabel", *lines]), encoding="utf-8")
    result = archlang("data", "show", 'file[path = "rows.tsv"]')
    assert result.code == 0, result.err
    assert "[/col]" in result.out
    assert_harmless(result.out, result.err)


def test_a_diagnostic_of_json_is_exact_without_raw_controls(archlang: Command, folder: Path) -> None:
    name = f"{ESCAPES.replace('/', '')}.arch"
    (folder / name).write_text("block", encoding="utf-8")
    result = archlang("check", name, "--json")
    assert_harmless(result.out)
    assert json.loads(result.out)[0]["file"] == name
