"""The commands as a user types them: what they print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archlang.cli.main import app

GOOD = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
BAD = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return nrom(h)\n}\n"
UGLY = "block layer ( h:seq[n,d] )->seq[n,d]{ # why\nreturn   norm( h ) }"


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.arch").write_text(GOOD)
    (tmp_path / "bad.arch").write_text(BAD)
    (tmp_path / "ugly.arch").write_text(UGLY)
    return tmp_path


@pytest.mark.parametrize("command", ["check", "fmt", "show", "explain", "blocks", "tasks", "train", "eval"])
def test_every_command_explains_itself_with_an_example(command: str) -> None:
    said = run(command, "--help")
    assert said.exit_code == 0
    assert "Example" in said.output


def test_an_unknown_command_or_option_ends_with_2() -> None:
    assert run("chekc").exit_code == 2
    assert run("check", "--nonsense", "x.arch").exit_code == 2
    assert run("check").exit_code == 2


def test_check_ends_with_0_or_1(folder: Path) -> None:
    fine = run("check", "good.arch")
    assert (fine.exit_code, fine.stdout.strip()) == (0, "1 file, no mistakes")
    wrong = run("check", "good.arch", "bad.arch")
    assert wrong.exit_code == 1
    assert "E0202" in wrong.output
    assert "did you mean `norm`?" in wrong.output
    assert "2 files, 1 error" in wrong.output


def test_check_prints_json_that_a_script_can_read(folder: Path) -> None:
    (found,) = json.loads(run("check", "--json", "bad.arch").stdout)
    assert (found["code"], found["file"], found["line"], found["column"]) == ("E0202", "bad.arch", 2, 12)
    assert run("check", "--json", "good.arch").stdout.strip() == "[]"


def test_check_prints_sarif(folder: Path) -> None:
    log = json.loads(run("check", "--sarif", "bad.arch").stdout)
    assert log["version"] == "2.1.0"
    (result,) = log["runs"][0]["results"]
    assert result["ruleId"] == "E0202"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"block \x00", b"(" * 100_000, b"", b"9" * 10_000])
def test_whatever_the_bytes_the_answer_is_no_traceback(folder: Path, content: bytes) -> None:
    (folder / "odd.arch").write_bytes(content)
    said = run("check", "odd.arch")
    assert said.exit_code in (0, 1)
    assert said.exception is None or isinstance(said.exception, SystemExit)


@pytest.mark.parametrize("name", ["nothing.arch", "."])
def test_a_missing_file_or_an_empty_folder_is_one_clear_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = run("check", name)
    assert said.exit_code == 1
    assert name in said.output


def test_fmt_formats_in_place_and_once_is_enough(folder: Path) -> None:
    assert run("fmt", "ugly.arch").exit_code == 0
    text = (folder / "ugly.arch").read_text()
    assert "# why" in text
    assert run("fmt", "--check", "ugly.arch").exit_code == 0
    assert (folder / "ugly.arch").read_text() == text


def test_fmt_check_and_diff_write_nothing(folder: Path) -> None:
    assert run("fmt", "--check", "ugly.arch").exit_code == 1
    assert "+block layer(h: seq[n, d])" in run("fmt", "--diff", "ugly.arch").output
    assert (folder / "ugly.arch").read_text() == UGLY


def test_fmt_leaves_a_file_that_cannot_be_parsed(folder: Path) -> None:
    (folder / "broken.arch").write_text("block {")
    assert run("fmt", "broken.arch", "ugly.arch").exit_code == 1
    assert (folder / "broken.arch").read_text() == "block {"


def test_fmt_reads_the_standard_input(folder: Path) -> None:
    assert run("fmt", "-", given=GOOD).stdout == GOOD


def test_explain_prints_the_page_and_finds_near_codes() -> None:
    assert "E0401" in run("explain", "e0401").output
    unknown = run("explain", "E9401")
    assert unknown.exit_code == 2
    assert "there is no code E9401" in unknown.output
    assert len(run("explain").output.splitlines()) >= 40


def test_blocks_and_tasks_list_and_show() -> None:
    assert "geometric_attention" in run("blocks").output
    shown = run("blocks", "copy_gate").output
    assert "block copy_gate" in shown
    assert "column_dropout: float = 0.0" in shown
    assert "flipflop" in run("tasks").output
    assert "order: symbol = backward" in run("tasks", "ctl").output
    near = run("blocks", "copygate")
    assert near.exit_code == 1
    assert "did you mean `copy_gate`?" in near.output


def test_blocks_print_json() -> None:
    (found,) = json.loads(run("blocks", "norm", "--json").stdout)
    assert found["name"] == "norm"
    assert any(json.loads(run("tasks", "--json").stdout))


def test_show_prints_every_stage(folder: Path) -> None:
    model = "model m[d = 8](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> last |> linear[classes]\n}\n"
    recipe = "recipe r { task ctl model m train adamw[steps = 1] }\n"
    (folder / "m.arch").write_text(model + recipe)
    assert "Definition(" in run("show", "m.arch", "--tree").output
    assert "call @embed" in run("show", "m.arch").output
    torch = run("show", "m.arch", "--torch").output
    assert "def forward(self, x" in torch
    assert "# m.arch:2" in torch
    assert "linear[out = 3" in run("show", "m.arch", "--model", "m", "--set", "classes=3").output
    assert run("show", "m.arch", "--tree", "--torch").exit_code == 2


def test_a_setting_without_a_value_is_a_wrong_command_line(folder: Path) -> None:
    assert run("train", "good.arch", "--set", "model.d").exit_code == 2
