"""`archlang train` as a user types it: what is printed, what is kept, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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

Command = Callable[..., Any]  # Any: what the fixture of conftest.py gives


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.arch").write_text(PROGRAM)
    return tmp_path


def test_training_ends_with_accuracies_by_split_and_the_claim(archlang: Command, folder: Path) -> None:
    said = archlang("train", "tiny.arch", "--device", "cpu")
    assert (said.code, said.err) == (0, "")
    for words in ("step 4/4", "test", "length 5", "length 3 (trained)", "Claimed", "nobody"):
        assert words in said.out
    (run,) = (folder / "runs" / "tiny").iterdir()
    assert f"the run is in runs/tiny/{run.name}" in said.out
    names = {path.name for path in run.iterdir()}
    assert {"recipe.arch", "run.json", "versions.json", "data.json", "metrics.jsonl", "timings.jsonl"} <= names
    assert {"results.json", "checkpoints", "tensorboard"} <= names
    assert (run / "recipe.arch").read_text() == PROGRAM


def test_runs_of_one_second_have_folders_of_their_own(archlang: Command, folder: Path) -> None:
    for _ in range(3):
        assert archlang("train", "tiny.arch", "--device", "cpu", "--steps", "1").code == 0
    assert len(list((folder / "runs" / "tiny").iterdir())) == 3


def test_settings_of_the_command_line_go_into_the_run(archlang: Command, folder: Path) -> None:
    archlang("train", "tiny.arch", "tiny", "--set", "model.d=4", "--steps", "2", "--seed", "7", "--precision", "bf16",
             "--out", "run", "--device", "cpu")  # fmt: skip
    run = json.loads((folder / "run" / "run.json").read_text())
    settings = run["settings"]
    assert (settings["model.d"], settings["train.steps"], settings["seed"]) == (4, 2, 7)
    assert run["precision"] == "bf16"


def test_json_is_all_that_is_printed_when_asked_for(archlang: Command, folder: Path) -> None:
    said = archlang("train", "tiny.arch", "--json", "--device", "cpu")
    found = json.loads(said.out)
    assert (said.code, said.err, found["stopped"], found["step"]) == (0, "", False, 4)
    kept = json.loads((folder / found["folder"] / "results.json").read_text())
    assert found["splits"] == kept["splits"]


def test_the_same_command_goes_on(archlang: Command, folder: Path) -> None:
    command = ("train", "tiny.arch", "--out", "run", "--device", "cpu")
    archlang(*command)
    said = archlang(*command)
    assert said.code == 0
    assert "resuming at step 4" in said.out


@pytest.mark.filterwarnings("default")
def test_a_damaged_checkpoint_is_told_of_in_a_line(archlang: Command, folder: Path) -> None:
    command = ("train", "tiny.arch", "--out", "run", "--device", "cpu")
    archlang(*command)
    (folder / "run" / "checkpoints" / "step-00000004" / "state.pt").write_bytes(b"")
    said = archlang(*command)
    assert said.code == 0
    assert "resuming at step 3" in said.out
    assert said.err.startswith("warning: ")
    assert "step-00000004 is damaged" in said.err
    assert ".py" not in said.err


def test_a_run_that_is_stopped_says_how_to_go_on(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from archlang.train import loop

    monkeypatch.setattr(loop.Loop, "run", lambda self, stop: [loop.Trained(2, stopped=True)])
    said = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu")
    assert said.code == 0
    assert "stopped at step 2; resume with `--resume run`" in said.err
    assert "Measured" not in said.out
    said = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu", "--json")
    assert json.loads(said.out) == {"folder": "run", "step": 2, "stopped": True}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("tiny.arch", "other"), "unknown recipe `other`"),
        (("tiny.arch", "--set", "model.width=4"), "unknown path `model.width` in this recipe"),
        (("tiny.arch", "--set", "model.d=wide"), "E0313"),
        (("tiny.arch", "--device", "cuda:99"), "no device `cuda:99`"),
        (("tiny.arch", "--precision", "16", "--device", "cpu"), "does not compute in precision 16"),
        (("missing.arch",), "missing.arch"),
        (("tiny.arch", "--set", "task.test=3..6"), "overlap"),
        (("tiny.arch", "--set", "task.valid_size=0"), "no items"),
        ((".",), "it is a folder"),
        (("tiny.arch", "--set", "seed=5000000000"), "the seed is 5000000000"),
        (("tiny.arch", "--set", "train.select=exam.accuracy"), "no split `exam`"),
        (("tiny.arch", "--out", "tiny.arch"), "is a file"),
        (("tiny.arch", "--out", "tiny.arch/run"), "cannot be written"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_ends_with_1_and_nothing_is_written(
    arguments: tuple[str, ...], words: str, archlang: Command, folder: Path
) -> None:
    said = archlang("train", *arguments)
    assert said.code == 1
    assert words in said.err.replace("\n", " ")
    assert "Traceback" not in said.out + said.err
    assert "internal error" not in said.err
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]
    assert (folder / "tiny.arch").read_text() == PROGRAM


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("tiny.arch", "--device", "gpu"),
        ("tiny.arch", "--device", "cuda:x"),
        ("tiny.arch", "--precision", "64"),
        ("tiny.arch", "--steps", "0"),
        ("tiny.arch", "--steps", "many"),
        ("tiny.arch", "--seed", "-1"),
        ("tiny.arch", "--seed", "4294967296"),
        ("tiny.arch", "--set", "model.d"),
        ("tiny.arch", "--speed", "9"),
        ("tiny.arch", "tiny", "tiny"),
    ],
    ids=" ".join,
)
def test_a_command_line_that_means_nothing_ends_with_2(
    arguments: tuple[str, ...], archlang: Command, folder: Path
) -> None:
    said = archlang("train", *arguments)
    assert said.code == 2
    assert "Traceback" not in said.err
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]


def test_another_recipes_folder_is_left_as_it_is(archlang: Command, folder: Path) -> None:
    archlang("train", "tiny.arch", "--out", "run", "--device", "cpu")
    before = {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}
    said = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu", "--seed", "2")
    assert said.code == 1
    assert "run holds another run: its seed is `1`, not `2`" in said.err
    assert before == {path: path.read_bytes() for path in (folder / "run").rglob("*") if path.is_file()}
