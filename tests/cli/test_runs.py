"""`archlang runs` and `archlang train --resume` on the command line."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import TINY, Command
from tests.train.runs.test_training import contents

PROGRAM = TINY + '    claim test.accuracy[5] = 1.00 ± 0.02 at task.order = backward from "nobody"\n}\n'


@pytest.fixture
def folder(tmp_path: Path, train_once: Callable[[str, str], Path]) -> Path:
    shutil.copytree(train_once(PROGRAM, "runs/a"), tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_runs_are_listed_with_their_state_step_and_metrics(archlang: Command, folder: Path) -> None:
    result = archlang("runs", "list", "--json")
    (run,) = json.loads(result.out)
    assert (run["folder"], run["state"], run["step"], run["seed"]) == ("runs/a", "done", 4, 1)
    assert set(run["metrics"]) == {"iid", "valid", "test"}
    listed = archlang("runs", "list").out.splitlines()
    assert listed[0] == "runs/a"
    assert re.fullmatch(
        r"    tiny on ctl, seed 1: done at step 4; iid.accuracy .*, test.accuracy \d.*%, [\d.]+ [kM]B", listed[1]
    )


def test_a_folder_without_runs_is_reported(archlang: Command, folder: Path) -> None:
    (folder / "empty").mkdir()
    assert "no runs" in archlang("runs", "list", "empty").out
    mistyped = archlang("runs", "list", "nowhere")
    assert mistyped.code == 1
    assert "there is no folder nowhere" in mistyped.err


def test_a_run_has_one_line_whatever_its_folder_is_called(archlang: Command, folder: Path) -> None:
    (folder / "runs" / "a").rename(folder / "runs" / "a\nb")
    assert archlang("runs", "list").out.splitlines()[0] == "runs/a\ufffdb"


def test_compared_runs_show_the_settings_that_differ_and_their_metrics(archlang: Command, folder: Path) -> None:
    archlang("train", "tiny.arch", "--device", "cpu", "--out", "runs/b", "--seed", "2", "--set", "model.d=16",
             "--set", "train.lr=1e-3")  # fmt: skip
    comparison = json.loads(archlang("runs", "compare", "runs/a", "runs/b", "--json").out)
    assert comparison["settings"] == {"seed": ["1", "2"], "model.d": ["8", "16"], "train.lr": ["0.01", "0.001"]}
    assert all(len(values) == 2 for values in comparison["metrics"].values())


def test_show_reports_the_cost_of_selecting_by_the_lowest_loss(archlang: Command, folder: Path) -> None:
    assert "lowest" not in archlang("runs", "show", "runs/a").out
    path = folder / "runs" / "a" / "results.json"
    results = json.loads(path.read_text())
    results["selection"][0] |= {"lowest_loss_step": 2, "there": 0.25, "best": 0.5}
    path.write_text(json.dumps(results))
    output = " ".join(archlang("runs", "show", "runs/a").out.split())
    assert (
        "the lowest valid loss is at step 2, with accuracy 25.0%; the best valid accuracy, 50.0%, is at step" in output
    )


def test_a_run_with_losses_that_are_not_finite_can_be_shown(archlang: Command, folder: Path) -> None:
    run = folder / "runs" / "a"
    results = json.loads((run / "results.json").read_text())
    results["splits"]["test"] |= {"loss": None, "metrics": {"accuracy": None}}
    results["selection"][0]["there"] = None
    (run / "results.json").write_text(json.dumps(results))
    lines = [json.loads(line) | {"loss": None} for line in (run / "metrics.jsonl").read_text().splitlines()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for command in (("runs", "show"), ("runs", "list"), ("runs", "compare"), ("report", "--no-page")):
        result = archlang(*command, "runs/a")
        assert (result.code, result.err) == (0, ""), command
    assert re.search(r"test +│ +40 │", archlang("runs", "show", "runs/a").out)


@pytest.mark.filterwarnings("default:.*the training has diverged")
def test_a_run_whose_loss_is_not_finite_can_be_read_by_every_command(archlang: Command, folder: Path) -> None:
    train = archlang("train", "tiny.arch", "--device", "cpu", "--out", "nan", "--set", "train.lr=1e25", "--set",
                     "train.steps=1", "--set", "train.select=valid.loss")  # fmt: skip
    assert train.code == 0
    assert "the training has diverged" in train.err.replace("\n", " ")
    results = json.loads((folder / "nan" / "results.json").read_text())
    assert (results["splits"]["test"]["loss"], results["best_step"]) == (None, None)
    reading = (
        ("runs", "show"), ("runs", "list"), ("runs", "compare"), ("report",), ("eval", "--device", "cpu"),
        ("inspect", "--device", "cpu", "--json"), ("train", "--device", "cpu", "--resume"),
    )  # fmt: skip
    for command in reading:
        result = archlang(*command, "nan")
        assert result.code == 0, command
        evaluates = command[0] in ("eval", "train")
        assert ("the training has diverged" in result.err.replace("\n", " ")) == evaluates, command
        assert "NaN" not in result.out, command


def test_lines_that_changed_before_the_checkpoint_are_not_resumed(archlang: Command, folder: Path) -> None:
    run = folder / "runs" / "a"
    metrics = run / "metrics.jsonl"
    text = metrics.read_text()
    for changed in (text.replace("1", "2", 1), text[:-20], "", text.replace("{", "", 1), "nope\n"):
        metrics.write_text(changed)
        result = archlang("train", "--resume", "runs/a", "--device", "cpu")
        assert result.code == 1
        assert "metrics.jsonl is damaged" in result.err.replace("\n", " ")
        assert metrics.read_text() == changed
    assert "metrics.jsonl is damaged: the last line" in archlang("runs", "show", "runs/a").err.replace("\n", " ")
    assert json.loads(archlang("runs", "list", "--json").out)[0]["state"] == "damaged"
    metrics.write_text(text + text)
    assert archlang("train", "--resume", "runs/a", "--device", "cpu").code == 0
    assert metrics.read_text() == text


@pytest.mark.filterwarnings("default:.*has lost lines")
def test_a_run_without_its_lines_resumes_with_a_warning(archlang: Command, folder: Path) -> None:
    (folder / "runs" / "a" / "metrics.jsonl").unlink()
    result = archlang("train", "--resume", "runs/a", "--device", "cpu")
    assert result.code == 0
    assert "has lost lines" in result.err


def test_a_run_that_the_machine_cannot_read_is_not_called_damaged(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("archlang.disk.folder.Folder.read", fail)
    result = archlang("runs", "list")
    assert (result.code, "damaged" in result.out, "unreadable: runs/a" in result.out) == (0, False, True)


def test_a_moved_run_shows_the_same_and_resumes_from_its_folder_alone(archlang: Command, folder: Path) -> None:
    before = contents(folder / "runs" / "a")
    shown = json.loads(archlang("runs", "show", "runs/a", "--json").out)
    (folder / "tiny.arch").unlink()
    moved = (folder / "runs" / "a").rename(folder / "moved")
    assert {**json.loads(archlang("runs", "show", "moved", "--json").out), "folder": "runs/a"} == shown
    shutil.rmtree(moved / "checkpoints" / "step-00000004")
    (moved / "results.json").unlink()
    assert archlang("train", "--resume", "moved", "--device", "cpu").code == 0
    assert contents(moved) == before
