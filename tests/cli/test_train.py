"""`archlang train` and `archlang eval` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archlang.cli.main import app
from archlang.diagnostics import ArchlangError

PROGRAM = """
model tiny[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> mean |> linear[classes]
}

recipe tiny {
    task  ctl[
        symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true,
        train = 1..3, valid = 4..4, test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40
    ]
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 4]
    claim test.accuracy = 1.00 ± 0.02 from "nobody"
}
"""


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.arch").write_text(PROGRAM)
    return tmp_path


def test_training_ends_with_accuracies_by_split_and_the_claim(folder: Path) -> None:
    said = run("train", "tiny.arch", "--device", "cpu")
    assert said.exit_code == 0, said.output
    for words in ("step 4/4", "test", "length 5", "Claimed", "nobody"):
        assert words in said.output
    (run_folder,) = (folder / "runs" / "tiny").iterdir()
    names = {path.name for path in run_folder.iterdir()}
    assert {"recipe.arch", "run.json", "versions.json", "metrics.jsonl", "results.json", "checkpoints"} <= names
    assert (run_folder / "recipe.arch").read_text() == PROGRAM
    assert any((run_folder / "tensorboard").iterdir())


def test_a_finished_run_is_measured_again(folder: Path) -> None:
    run("train", "tiny.arch", "--device", "cpu", "--out", "run")
    said = run("eval", "run", "--split", "test", "--json", "--device", "cpu")
    (score,) = json.loads(said.stdout)
    kept = json.loads((folder / "run" / "results.json").read_text())
    assert score["metrics"] == kept["splits"]["test"]["metrics"]


def test_settings_of_the_command_line_go_into_the_run(folder: Path) -> None:
    run("train", "tiny.arch", "--set", "model.d=4", "--steps", "2", "--seed", "7", "--out", "run", "--device", "cpu")
    settings = json.loads((folder / "run" / "run.json").read_text())["settings"]
    assert (settings["model.d"], settings["train.steps"], settings["seed"]) == (4, 2, 7)


def test_json_is_all_that_is_printed_when_asked_for(folder: Path) -> None:
    said = run("train", "tiny.arch", "--json", "--device", "cpu")
    assert "splits" in json.loads(said.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "tiny.arch", "other"), "no recipe is called `other`"),
        (("train", "tiny.arch", "--set", "model.width=4"), "nothing in this recipe is called `model.width`"),
        (("train", "tiny.arch", "--set", "model.d=wide"), "E0313"),
        (("train", "tiny.arch", "--device", "cuda:99"), "no device"),
        (("train", "missing.arch"), "missing.arch"),
        (("train", "tiny.arch", "--set", "task.test=3..6"), "overlap"),
        (("train", "tiny.arch", "--set", "task.valid_size=0"), "no items"),
        (("train", "."), "it is a folder"),
        (("eval", "nothing"), "no run folder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_is_said_and_nothing_is_written(folder: Path, arguments: tuple[str, ...], words: str) -> None:
    said = run(*arguments)
    assert said.exit_code != 0
    assert isinstance(said.exception, ArchlangError)
    assert words in str(said.exception)
    assert not (folder / "runs").exists()


def test_a_split_that_does_not_exist_is_named(folder: Path) -> None:
    run("train", "tiny.arch", "--device", "cpu", "--out", "run")
    said = run("eval", "run", "--split", "exam", "--device", "cpu")
    assert "no split `exam`" in str(said.exception)
