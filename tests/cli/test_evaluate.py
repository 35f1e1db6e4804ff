"""`archlang eval` on the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from archlang.cli.app import app
from archlang.errors import ArchlangError

PROGRAM = """
model tiny[d = 8](x: tokens[n]) -> logits[n, vocab] {
    return embed[d](x) |> linear[vocab]
}

recipe tiny {
    task  flipflop[
        length = 24, test_length = [32, 48], test_ignore = [0.1, 0.8],
        train_size = 30, iid_size = 10, valid_size = 5, test_size = 10
    ]
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 4]
}
"""


def eval_(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["eval", *arguments, "--device", "cpu"])


@pytest.fixture
def run(tmp_path: Path, train_once: Callable[[str, str], Path]) -> Path:
    shutil.copytree(train_once(PROGRAM, "run"), tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def test_a_run_is_evaluated_by_split_and_group(run: Path) -> None:
    result = eval_("run")
    assert result.exit_code == 0
    for words in ("the weights of step", "iid", "valid", "test", "last accuracy", "sequence accuracy", "ignore 80"):
        assert words in result.output
    assert "length 24 (trained)" in result.output


def test_json_equals_the_results_of_the_run(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    result = json.loads(eval_("run", "--json").stdout)
    assert result == {"step": results["best_step"], "splits": results["splits"]}


def test_only_named_splits_are_evaluated(run: Path) -> None:
    result = json.loads(eval_("run", "--split", "test", "--split", "train", "--json").stdout)
    assert list(result["splits"]) == ["test", "train"]
    assert result["splits"]["train"]["items"] == 30


def test_other_statics_of_the_task_give_other_items(run: Path) -> None:
    arguments = ("run", "--split", "test", "--set", "task.test_length=[64, 128]", "--set", "task.test_size=6")
    result = eval_(*arguments, "--json")
    assert result.stderr == ""
    evaluation = json.loads(result.stdout)
    assert evaluation["set"] == {"task.test_length": "[64, 128]", "task.test_size": "6"}
    assert list(evaluation["splits"]["test"]["groups"]["length"]) == ["64", "128"]
    assert "task.test_length = [64, 128]" in eval_(*arguments).output


def test_the_weights_of_a_checkpoint_are_evaluated(run: Path) -> None:
    assert json.loads(eval_("run", "--checkpoint", "last", "--json").stdout)["step"] == 4


def test_only_the_task_can_change_after_training(run: Path) -> None:
    result = eval_("run", "--set", "model.d=4")
    assert result.exit_code == 2
    assert "`model.d` cannot change after training" in result.stderr


def test_decode_has_no_effect_on_answers_that_are_no_sequences(run: Path) -> None:
    assert "`--decode` has no effect" in eval_("run", "--decode", "4").stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nothing",), "is not a run folder"),
        (("tiny.arch",), "is not a run folder"),
        (("run", "--split", "exam"), "no split `exam`"),
        (("run", "--checkpoint", "99"), "step 99"),
        (("run", "--set", "task.lenth=4"), "unknown path `task.lenth`"),
    ],
)
def test_an_error_is_reported(arguments: tuple[str, ...], words: str, run: Path) -> None:
    result = eval_(*arguments)
    assert result.exit_code == 1
    assert isinstance(result.exception, ArchlangError)
    assert words in str(result.exception)


WRITER = """
model writer[d = 8](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    memory = embed[d](source)
    return embed[d](target) |> attention[2](memory) |> linear[vocab]
}

recipe writer {
    task  copy[train = 1..2, valid = 3..3, test = [4], train_size = 20, valid_size = 5, test_size = 10, eos = true]
    model writer
    train adamw[lr = 1e-2, batch = 8, steps = 2]
}
"""


def test_decode_sets_the_number_of_generated_answers(tmp_path: Path) -> None:
    (tmp_path / "writer.arch").write_text(WRITER)
    result = CliRunner().invoke(app, ["train", "writer.arch", "--out", "run", "--device", "cpu"])
    assert result.exit_code == 0, result.output
    for metric in ("exact match", "oracle match"):
        assert metric in result.output
    sampled = eval_("run", "--split", "test", "--decode", "4")
    assert "the model generated: 4 of test" in " ".join(sampled.output.split())
    without = json.loads(eval_("run", "--split", "test", "--decode", "0", "--json").stdout)
    assert set(without["splits"]["test"]["metrics"]) == {"accuracy", "sequence_accuracy"}
    assert eval_("run", "--decode", "-1").exit_code == 2
    fewer_symbols = eval_("run", "--set", "task.symbols=5")
    assert "`copy` has vocab = 7, and the model was made for 12" in str(fewer_symbols.exception)
