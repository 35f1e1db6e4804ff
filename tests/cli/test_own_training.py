"""An optimizer, a schedule, a loss, a metric and a tracker of the user's own, from the command line."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command

EXAMPLES = Path(__file__).parent.parent.parent / "docs" / "examples"
PLUGIN = ("--plugin", "training.py", "--device", "cpu")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    for name in ("training.arch", "training.py"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    return tmp_path


def change(folder: Path, old: str, new: str, name: str = "training.py") -> None:
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))


def test_a_run_names_what_it_used_and_is_resumed_and_evaluated(archlang: Command, folder: Path) -> None:
    sets = ("--set", "train.every=2", "--steps", "6", "--set", "train.select=valid.near")
    assert archlang("train", "training.arch", *sets, "--out", "whole", *PLUGIN).code == 0
    train = json.loads((folder / "whole" / "run.json").read_text())["train"]
    assert (train["name"], train["python"]) == ("signs", "training:Signs")
    assert train["statics"]["rate"] == {"symbol": "training.zigzag"}
    assert train["statics"]["loss"] == {"symbol": "training.focal"}
    assert train["statics"]["metrics"] == [{"symbol": "training.near"}]
    # A run that ends at its fourth step, as if it had been stopped there.
    shutil.copytree(folder / "whole", folder / "stopped")
    (folder / "stopped" / "results.json").unlink()
    shutil.rmtree(folder / "stopped" / "checkpoints" / "step-00000006")
    resumed = archlang("train", "--resume", "stopped", "--track", "training.rows", *PLUGIN)
    assert resumed.code == 0, resumed.err
    for name in ("metrics.jsonl", "results.json", "checkpoints/step-00000006/weights.safetensors"):
        assert (folder / "stopped" / name).read_bytes() == (folder / "whole" / name).read_bytes()
    assert (folder / "rows.csv").read_text().startswith("5,train/loss,")
    evaluated = json.loads(archlang("eval", "whole", "--json", *PLUGIN).out)
    assert evaluated["splits"]["test"] == json.loads((folder / "whole" / "results.json").read_text())["splits"]["test"]
    assert 0 <= evaluated["splits"]["test"]["metrics"]["near"] <= 1
    assert "training.py" in archlang("eval", "whole", "--device", "cpu").err


def test_without_the_option_nothing_runs_and_nothing_is_written(archlang: Command, folder: Path) -> None:
    result = archlang("train", "training.arch", "--out", "run", "--device", "cpu")
    assert result.code == 1
    assert "add `--plugin training.py`" in result.err
    assert "training small" not in result.out
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("weight.sub_(group", "weight.sup_(group", "training.py:26 fails: AttributeError"),
        ("** 2 * losses", "** 2 * losses * float('nan')", "check the results of `training.focal`"),
        ("lr * (0.1", "-lr * (0.1", "training.py:29: `rate = training.zigzag` returns -0.001 at step 0"),
        ("return lr * (0.1", "return __import__('sys').exit(3) * (0.1", "training.py:31 fails: SystemExit: 3"),
        ("** 2 * losses", "** 2 * __import__('sys').exit(3)", "training.py:37 fails: SystemExit: 3"),
        ("weight.sub_(group", "weight.sub_(__import__('sys').exit(3)", "training.py:26 fails: SystemExit: 3"),
        ("<= 1).astype", "<= 1).sum().astype", "training.py:40: `metrics = training.near` returns an array []"),
    ],
)
def test_a_mistake_in_ones_own_python_names_its_line(
    old: str, new: str, message: str, archlang: Command, folder: Path
) -> None:
    change(folder, old, new)
    result = archlang("train", "training.arch", "--steps", "2", "--out", "run", *PLUGIN)
    assert result.code == 1
    assert message in result.err
    assert "Traceback" not in result.err


@pytest.mark.filterwarnings("default::archlang.train.record.curves.RunWarning")
@pytest.mark.parametrize(
    ("opened", "error"),
    [
        ('open("missing/rows.csv"', "FileNotFoundError"),
        ('__import__("sys").exit(3) or open("rows.csv"', "SystemExit: 3"),
    ],
)
def test_an_error_of_a_tracker_is_a_warning_and_the_run_records_it(
    opened: str, error: str, archlang: Command, folder: Path
) -> None:
    change(folder, 'open("rows.csv"', opened)
    result = archlang("train", "training.arch", "--steps", "2", "--out", "run", "--track", "training.rows", *PLUGIN)
    assert result.code == 0
    assert json.loads((folder / "run" / "run.json").read_text())["track"] == ["training.rows"]
    assert f"training.rows gets no further points: training.py:47 fails: {error}" in result.err


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("training.near", "help: write a list: `[training.near]`"),
        ("[training.near, training.near]", "two metrics of a run have the name `near`"),
    ],
)
def test_a_mistake_in_the_metrics_is_refused(metrics: str, message: str, archlang: Command, folder: Path) -> None:
    result = archlang("train", "training.arch", "--set", f"train.metrics={metrics}", "--out", "run", *PLUGIN)
    assert result.code == 1
    assert message in result.err
    assert not (folder / "run").exists()


@pytest.mark.parametrize("metric", ["accuracy", "exact_match", "loss"])
def test_a_metric_does_not_hide_another_one(metric: str, archlang: Command, folder: Path) -> None:
    change(folder, "def near", f"def {metric}")
    change(folder, "training.near", f"training.{metric}", "training.arch")
    result = archlang("train", "training.arch", "--steps", "2", "--out", "run", *PLUGIN)
    assert result.code == 1
    assert f"two metrics of a run have the name `{metric}`" in result.err
