"""A task of a user's own: a signature in the program, a class in a Python file, and nothing run without `--plugin`."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Command
from tests.tasks.kit.test_make_task import PLUGIN

PROGRAM = """
extern task even[size: int = 3](x: tokens[n]) -> logits[classes]
    gives vocab = 2, classes = 2
    python "mine:Even"

model small[d = 4](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> mean |> linear[classes]
}

recipe r {
    task  even[size = 8]
    model small
    train adamw[batch = 4, steps = 1, select = test.accuracy]
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.arch").write_text(PROGRAM)
    side_effect = 'from pathlib import Path\nPath("ran").touch()\n'
    (tmp_path / "mine.py").write_text(side_effect + PLUGIN.replace('return ("train",)', 'return ("train", "test")'))
    return tmp_path


@pytest.mark.parametrize(
    "command", [("check", "r.arch"), ("train", "r.arch", "--out", "run"), ("table", "r.arch", "--out", "runs"),
                ("data", "show", "even", "--program", "r.arch")]
)  # fmt: skip
def test_without_the_flag_no_python_of_a_program_runs(
    archlang: Command, folder: Path, command: tuple[str, ...]
) -> None:
    result = archlang(*command)
    assert not (folder / "ran").exists()
    if command[0] != "check":
        assert result.code == 1
        assert "add `--plugin mine.py`" in result.err


def test_a_run_is_trained_resumed_and_evaluated(archlang: Command, folder: Path) -> None:
    run = ("--device", "cpu", "--plugin", "mine.py")
    assert archlang("train", "r.arch", "--out", "run", *run).code == 0
    assert "add `--plugin mine.py`" in archlang("eval", "run", "--device", "cpu").err
    results = json.loads(archlang("eval", "run", "--json", *run).out)
    assert results["splits"]["test"]["items"] == 8
    assert archlang("train", "--resume", "run", *run).code == 0
    # The run has a copy of the class.
    assert archlang("eval", "run", "--device", "cpu", "--plugin", "run/mine.py").code == 0


def test_the_points_of_a_table_are_trained_in_other_processes(archlang: Command, folder: Path) -> None:
    result = archlang("table", "r.arch", "--out", "runs", "--seeds", "2", "--device", "cpu", "--plugin", "mine.py")
    assert result.code == 0, result.out + result.err
    assert len(list((folder / "runs").glob("*/results.json"))) == 2


def test_check_holds_the_class_against_its_signature(archlang: Command, folder: Path) -> None:
    assert archlang("check", "r.arch", "--plugin", "mine.py").code == 0
    (folder / "r.arch").write_text(PROGRAM.replace("vocab = 2", "vocab = 5"))
    result = archlang("check", "r.arch", "--plugin", "mine.py")
    assert result.code == 1
    assert "gives vocab = 5, and its class has 2 tokens" in result.err


def test_a_signature_in_the_program_is_checked(archlang: Command, folder: Path) -> None:
    (folder / "r.arch").write_text(PROGRAM.replace("size: int = 3", "size: integer = 3"))
    result = archlang("check", "r.arch")
    assert result.code == 1
    assert "integer" in result.err


def test_data_show_prints_it(archlang: Command) -> None:
    result = archlang("data", "show", "even", "--program", "r.arch", "--plugin", "mine.py")
    assert result.code == 0
    assert "one zero" in result.out


def test_a_search_runs_with_a_plugin_task(archlang: Command, folder: Path) -> None:
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    (folder / "r.arch").write_text(PROGRAM.replace("steps = 1, ", "steps = 1, lr = 1e-3, ").replace(
        "select = test.accuracy]\n", "select = test.accuracy]\n    search train.lr in 1e-4..1e-2 log\n"
    ))  # fmt: skip
    asked = ("tune", "r.arch", "--trials", "2", "--out", "study", "--device", "cpu")
    assert "add `--plugin mine.py`" in archlang(*asked).err
    result = archlang(*asked, "--plugin", "mine.py", "--json")
    assert result.code == 0, result.err
    assert len(json.loads(result.out)["trials"]) == 2
