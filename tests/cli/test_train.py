"""`archlang train` on the command line: output, run folder and exit code."""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import torch

from archlang.train.runs import training
from archlang.train.step import EagerStep
from tests.cli.conftest import TINY, Command
from tests.train.runs.test_training import at_call, contents

PROGRAM = TINY + '    claim test.accuracy = 1.00 ± 0.02 from "nobody"\n}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.arch").write_text(PROGRAM)
    return tmp_path


def test_training_ends_with_accuracies_by_split_and_the_claim(archlang: Command, folder: Path) -> None:
    result = archlang("train", "tiny.arch", "--device", "cpu")
    assert (result.code, result.err) == (0, "")
    for words in ("step 4/4", "test", "length 5", "length 3 (trained)", "Claimed", "nobody"):
        assert words in result.out
    (run,) = (folder / "runs" / "tiny").iterdir()
    assert f"the run is in runs/tiny/{run.name}" in result.out
    names = {path.name for path in run.iterdir()}
    assert {"recipe.arch", "run.json", "versions.json", "data.json", "metrics.jsonl", "timings.jsonl"} <= names
    assert {"results.json", "checkpoints", "tensorboard"} <= names
    assert (run / "recipe.arch").read_text() == PROGRAM


def test_a_line_says_what_is_trained_before_torch_is_imported(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The import of the training, and with it that of torch, fails.
    monkeypatch.delattr("archlang.train.runs.training", raising=False)
    monkeypatch.setitem(sys.modules, "archlang.train.runs.training", None)
    result = archlang("train", "tiny.arch", "--device", "cpu")
    assert result.code != 0
    assert result.out.startswith("training tiny on ctl, seed 1, in runs/tiny/")


def test_runs_of_the_same_second_have_their_own_folders(archlang: Command, folder: Path) -> None:
    for _ in range(2):
        assert archlang("train", "tiny.arch", "--device", "cpu", "--steps", "1").code == 0
    assert len(list((folder / "runs" / "tiny").iterdir())) == 2


def test_settings_of_the_command_line_go_into_the_run(archlang: Command, folder: Path) -> None:
    archlang("train", "tiny.arch", "tiny", "--set", "model.d=4", "--steps", "2", "--seed", "7", "--precision", "bf16",
             "--out", "run", "--device", "cpu")  # fmt: skip
    run = json.loads((folder / "run" / "run.json").read_text())
    settings = run["settings"]
    assert (settings["model.d"], settings["train.steps"], settings["seed"]) == (4, 2, 7)
    assert run["precision"] == "bf16"


def test_json_is_the_only_output(archlang: Command, folder: Path) -> None:
    result = archlang("train", "tiny.arch", "--json", "--device", "cpu")
    printed = json.loads(result.out)
    assert (result.code, result.err, printed["stopped"], printed["step"]) == (0, "", False, 4)
    stored = json.loads((folder / printed["folder"] / "results.json").read_text())
    assert printed["splits"] == stored["splits"]


@pytest.mark.filterwarnings("default")
def test_rerunning_the_command_resumes_and_a_damaged_checkpoint_causes_one_line_of_warning(
    archlang: Command, folder: Path
) -> None:
    command = ("train", "tiny.arch", "--out", "run", "--device", "cpu")
    archlang(*command)
    result = archlang(*command)
    assert result.code == 0
    assert "resuming at step 4" in result.out
    (folder / "run" / "checkpoints" / "step-00000004" / "state.pt").write_bytes(b"")
    result = archlang(*command)
    assert result.code == 0
    assert "resuming at step 3" in result.out
    assert result.err.startswith("warning: ")
    assert "step-00000004 is damaged" in result.err
    assert ".py" not in result.err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_with_its_code_and_a_checkpoint(
    number: signal.Signals, archlang: Command, folder: Path
) -> None:
    command = ("train", "tiny.arch", "--out", "run", "--device", "cpu")
    with pytest.MonkeyPatch.context() as patched:
        at_call(patched, EagerStep, "take", 2, lambda: os.kill(os.getpid(), number))
        stopped = archlang(*command)
    assert (stopped.code, "Measured" in stopped.out) == (128 + number, False)
    assert "stopped at step 2; resume with `--resume run`" in stopped.err
    shown = archlang(*command, "--for", "0s", "--json").out
    assert json.loads(shown) == {"folder": "run", "step": 2, "stopped": True}
    archlang(*command)
    archlang("train", "tiny.arch", "--out", "whole", "--device", "cpu")
    assert contents(folder / "run") == contents(folder / "whole")


def test_a_run_with_a_time_limit_stops_with_a_checkpoint(archlang: Command, folder: Path) -> None:
    first = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu", "--for", "0s")
    assert first.code == 0
    assert "stopped after 0s at step 0; resume with `--resume run`" in first.err
    archlang("train", "--resume", "run", "--device", "cpu", "--for", "1h")
    again = archlang("train", "--resume", "run", "--device", "cpu", "--for", "0s")
    assert again.code == 0
    assert "the run was done before and keeps its results" in again.err
    result = archlang("train", "tiny.arch", "--for", "soon")
    assert result.code == 2
    assert "'soon' is not a duration" in result.err


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
def test_an_error_exits_with_its_code_and_writes_nothing(
    arguments: tuple[str, ...], words: str, archlang: Command, folder: Path
) -> None:
    result = archlang("train", *arguments)
    assert result.code == (71 if "no device" in words else 1)
    assert words in result.err.replace("\n", " ")
    assert "Traceback" not in result.out + result.err
    assert "internal error" not in result.err
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]
    assert (folder / "tiny.arch").read_text() == PROGRAM


def test_no_program_and_two_programs_are_told_apart(archlang: Command, folder: Path) -> None:
    assert "and none is given" in archlang("train").err
    assert "not both" in archlang("train", "model.arch", "--resume", "run").err


@pytest.mark.parametrize(
    "arguments",
    [
        (), ("--resume", "run", "--seed", "3"), ("tiny.arch", "--device", "gpu"), ("tiny.arch", "--device", "cuda:x"),
        ("tiny.arch", "--precision", "64"), ("tiny.arch", "--steps", "0"), ("tiny.arch", "--steps", "many"),
        ("tiny.arch", "--seed", "-1"), ("tiny.arch", "--seed", "4294967296"), ("tiny.arch", "--set", "model.d"),
        ("tiny.arch", "--haste", "9"), ("tiny.arch", "tiny", "tiny"),
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_usage_error_exits_with_2(arguments: tuple[str, ...], archlang: Command, folder: Path) -> None:
    result = archlang("train", *arguments)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]


def test_another_number_of_processes_than_torchrun_has_started_is_a_usage_error(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    result = archlang("train", "tiny.arch", "--devices", "4")
    assert result.code == 2
    assert "torchrun has started 2, and `--devices` names 4" in result.err


def test_a_file_without_the_selecting_split_names_one_that_it_has(archlang: Command, folder: Path) -> None:
    (folder / "moods.tsv").write_text("text\tlabel\na b\tgood\nb\tbad\n")
    (folder / "moods.arch").write_text(
        "model moods[d = 4](x: tokens[n]) -> logits[classes] { return embed[d](x) |> mean |> linear[classes] }\n"
        'recipe moods { task file[path = "moods.tsv"] model moods train adamw[batch = 2, steps = 1] }\n'
    )
    result = archlang("train", "moods.arch", "--out", "run", "--device", "cpu")
    assert result.code == 1
    assert "set `valid_share = 0.1`, or set `select = train.accuracy`" in result.err
    select = ("--set", "train.select=train.accuracy")
    trained = archlang("train", "moods.arch", "--out", "run", "--device", "cpu", *select)
    assert trained.code == 0
    # The training split is measured, as there is no other.
    assert re.search(r"train +│ +2 ", trained.out)


def test_a_dry_run_says_the_bytes_of_each_device_and_refuses_what_does_not_fit(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dry_run = ("train", "tiny.arch", "--device", "cpu", "--devices", "2", "--shard", "--dry-run")
    result = archlang(*dry_run)
    assert (result.code, result.err) == (0, "")
    for words in ("4 steps, about", "on 1 device: ", "on 2 devices: ", "on 2 devices, --shard: ", "(weights 0.0 MB, "):
        assert words in result.out
    assert archlang(*dry_run, "--remat", "auto").out != result.out
    monkeypatch.setattr(training, "available_memory", lambda: 1000)
    result = archlang(*dry_run)
    assert result.code == 71
    assert re.search(
        r"training needs 0\.0 MB of `cpu`, 0\.0 MB a device \(.*\), which has 0\.0 GB", result.err.replace("\n", " ")
    )
    assert "`--shard`, `--remat auto`" in result.err
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--devices", "2", "--set", "train.batch=1"), "cannot be shared by 2 processes"),
        (
            ("--devices", "2", "--shard", "--set", "train.sign_sgd=[embed]"),
            "cannot divide its weights: `sign_sgd` moves",
        ),
        (("--shard",), "cannot divide its weights: a single process holds all of them"),
        (("--precision", "16"), "the device `cpu` does not compute in precision 16"),
    ],
)
def test_a_dry_run_refuses_what_the_run_refuses(
    options: tuple[str, ...], reason: str, archlang: Command, folder: Path
) -> None:
    for dry in ((), ("--dry-run",)):
        result = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu", *options, *dry)
        assert result.code == 1
        assert reason in result.err.replace("\n", " ")
    assert [path.name for path in folder.iterdir()] == ["tiny.arch"]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--set", "task.length=100_000"), "the split `train` of `text` has no items"),
        (("--from", "nothing"), "nothing is neither a run nor a saved model"),
        (("--track", "wandbee"), "there is no tracker `wandbee`"),
        (("--track", "mine.rows"), "the tracker `mine.rows`"),
        (("--out", "words.arch"), "words.arch exists and is a file"),
        (("--out", "texts"), "texts exists and holds other files"),
    ],
)
def test_a_dry_run_asks_the_files_that_the_run_asks(
    arguments: tuple[str, ...], reason: str, archlang: Command, folder: Path
) -> None:
    (folder / "texts").mkdir()
    (folder / "texts" / "a.txt").write_text("one two three\n" * 20)
    (folder / "words.arch").write_text(
        "model words[d = 4](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> linear[vocab] }\n"
        'recipe words { task text[path = "texts", length = 4, valid_share = 0.2] model words\n'
        "    train adamw[batch = 2, steps = 1] }\n"
    )

    def files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = files()
    for dry in ((), ("--dry-run",)):
        result = archlang("train", "words.arch", *arguments, "--device", "cpu", *dry)
        assert result.code in (1, 71)
        assert reason in result.err.replace("\n", " ")
        assert files() == before


def test_a_dry_run_says_which_weights_the_run_begins_with(archlang: Command, folder: Path) -> None:
    assert archlang("train", "tiny.arch", "--out", "first", "--device", "cpu").code == 0
    options = ("train", "tiny.arch", "--from", "first", "--set", "model.d=16", "--out", "second", "--device", "cpu")
    dry, run = archlang(*options, "--dry-run"), archlang(*options)
    (line,) = [line for line in run.out.splitlines() if line.startswith("begins with 1 weight of ")]
    assert line in dry.out


OWN_BLOCK = """import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self, d: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        return self.scale * x
"""


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--precision", "16"), "the device `cpu` does not compute in precision 16"),
        (("--devices", "2", "--shard"), "the weight `scale.scale` is a single number without an axis"),
    ],
)
def test_a_dry_run_asks_the_device_of_auto_and_the_blocks_of_ones_own(
    options: tuple[str, ...], reason: str, archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    (folder / "mine.py").write_text(OWN_BLOCK)
    text = (folder / "tiny.arch").read_text().replace("embed[d](x)", "scale(embed[d](x))", 1)
    declared = 'extern block scale(x: seq[n, d]) -> seq[n, d]\n    python "mine:Scale"\n'
    (folder / "tiny.arch").write_text(declared + text)
    result = archlang("train", "tiny.arch", "--plugin", "mine.py", *options, "--dry-run")
    assert result.code == 1
    assert reason in result.err.replace("\n", " ")
