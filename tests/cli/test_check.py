"""`archlang check`: what it prints, and how it ends."""

import gc
import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command


def test_a_program_without_mistakes_ends_with_0(archlang: Command, folder: Path) -> None:
    said = archlang("check", "good.arch")
    assert (said.code, said.out, said.err) == (0, "1 file, no mistakes\n", "")


def test_a_mistake_ends_with_1_and_stands_in_the_error_stream(archlang: Command, folder: Path) -> None:
    said = archlang("check", "good.arch", "bad.arch")
    assert (said.code, said.out) == (1, "2 files, 1 error\n")
    assert said.err == (
        "error[E0202]: unknown block `nrom`\n"
        " --> bad.arch:2:12\n"
        "2 |     return nrom(h)\n"
        "  |            ^^^^ no such block\n"
        "  help: did you mean `norm`?\n"
        "\n"
    )


def test_a_warning_ends_with_0(archlang: Command, folder: Path) -> None:
    text = "block layer(h: seq[n, d]) -> seq[n, d] {\n    a = norm(h)\n    return h\n}\n"
    (folder / "unused.arch").write_text(text)
    said = archlang("check", "unused.arch")
    assert (said.code, said.out) == (0, "1 file, 1 warning\n")
    assert "warning[W0201]" in said.err


def test_quiet_prints_mistakes_only(archlang: Command, folder: Path) -> None:
    assert archlang("check", "--quiet", "good.arch").out == ""
    said = archlang("check", "-q", "bad.arch")
    assert (said.code, said.out) == (1, "")
    assert "E0202" in said.err


def test_a_folder_stands_for_the_programs_below_it(archlang: Command, folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "good.arch").rename(folder / "deep" / "er" / "good.arch")
    (folder / "deep" / "notes.txt").write_text("no program")
    assert archlang("check", "deep").out == "1 file, no mistakes\n"


def test_a_mistake_in_a_file_that_two_others_use_is_said_once(archlang: Command, folder: Path) -> None:
    for name in ("one", "two"):
        (folder / f"{name}.arch").write_text('use "./bad.arch"\n')
    assert archlang("check", "one.arch", "two.arch", "bad.arch").err.count("E0202") == 1


def test_json_is_what_a_script_can_read(archlang: Command, folder: Path) -> None:
    said = archlang("check", "--json", "bad.arch")
    assert (said.code, said.err) == (1, "")
    (found,) = json.loads(said.out)
    assert (found["code"], found["severity"], found["file"]) == ("E0202", "error", "bad.arch")
    assert (found["line"], found["column"], found["end_line"], found["end_column"]) == (2, 12, 2, 16)
    assert found["remedy"] == "did you mean `norm`?"
    assert json.loads(archlang("check", "--json", "good.arch").out) == []


def test_sarif_is_what_code_hosts_can_read(archlang: Command, folder: Path) -> None:
    log = json.loads(archlang("check", "--sarif", "bad.arch").out)
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    (result,) = run["results"]
    assert result["ruleId"] == "E0202"
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "E0202"
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 2


def test_json_and_sarif_at_once_is_a_wrong_command_line(archlang: Command, folder: Path) -> None:
    assert archlang("check", "--json", "--sarif", "good.arch").code == 2


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe\x00", b"block \x00", b"(" * 100_000, b"9" * 10_000, "block \u202e\ud800".encode("utf-8", "replace")],
    ids=["no UTF-8", "a zero byte", "brackets", "a giant number", "turned writing"],
)
def test_whatever_the_bytes_the_answer_is_a_diagnostic(archlang: Command, folder: Path, content: bytes) -> None:
    (folder / "odd.arch").write_bytes(content)
    said = archlang("check", "odd.arch")
    assert said.code == 1
    assert said.err.startswith("error[E01")


def test_an_empty_program_is_a_program(archlang: Command, folder: Path) -> None:
    (folder / "empty.arch").write_bytes(b"")
    assert archlang("check", "empty.arch").code == 0


@pytest.mark.parametrize("name", ["nothing.arch", "empty", "/dev/null", "x" * 300])
def test_what_cannot_be_read_is_one_clear_error(archlang: Command, folder: Path, name: str) -> None:
    (folder / "empty").mkdir()
    said = archlang("check", name)
    assert said.code == 1
    assert name in said.err
    assert said.err.startswith("error")
    assert "help: " in said.err


def test_garbage_is_collected_as_before_when_a_check_is_over(archlang: Command, folder: Path) -> None:
    thresholds = gc.get_threshold()
    archlang("check", "good.arch", "bad.arch")
    assert gc.get_threshold() == thresholds
