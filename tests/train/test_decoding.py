"""The metrics of written answers equal those of a slow loop over single items."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import archlang
from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.diagnostics import ProgramError
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.record.checkpoint import Checkpoints
from archlang.record.reading import read_graph
from archlang.record.schemas import json_value
from archlang.runs import evaluation, training
from archlang.tasks.copy import Copy
from archlang.tasks.ctl import Ctl
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import DecodableTask, Task
from archlang.train.data import Data
from archlang.train.score import Interrupted, Score, add_written, evaluate
from archlang.types.statics import Interval

CPU = torch.device("cpu")
WRITER = """
use archlang.models.seq2seq

recipe writer {
    task  copy[
        symbols = 2, train = 1..3, valid = 4..4, test = [5, 6], train_size = 40, valid_size = 20, test_size = 10,
        eos = true
    ]
    model seq2seq[d = 16, heads = 2, ff = 16, layers = 1, dropout = 0.0]
    train adamw[lr = 3e-3, batch = 8, steps = 30]
    claim test.exact_match = 0.50 from "nobody"
    claim test.exact_match[6] = 0.40 from "nobody"
    claim valid.oracle_match = 0.60 from "nobody"
}
"""


def copy_task(**statics: object) -> Copy:
    defaults = {"train": Interval(1, 3), "valid": Interval(4, 4), "test": (5, 6), "symbols": 2, "eos": True}
    return Copy(**{**defaults, "train_size": 60, "valid_size": 20, "test_size": 10, **statics})  # type: ignore[arg-type] # statics of the task


@pytest.fixture(scope="module")
def point(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    file = tmp_path_factory.mktemp("program") / "writer.arch"
    file.write_text(WRITER)
    assert check(file) == ()
    return plan_recipe(file)


@pytest.fixture(scope="module")
def run(point: Plan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "writer"
    training.train(point, folder, device="cpu")
    return folder


@pytest.fixture
def writer(tmp_path: Path) -> Architecture:
    """An untrained model, whose short answers are right now and then."""
    torch.manual_seed(4)
    path = tmp_path / "writer.arch"
    path.write_text(WRITER)
    return archlang.load(path)


def scores(module: Architecture, split: Split, task: Task, **options: object) -> tuple[Score, Score]:
    """Returns the score without and with written answers."""
    plain = evaluate(module, Data(split, CPU), split, "test", task)
    return plain, add_written(plain, module, split, task, CPU, **options)  # type: ignore[arg-type] # arguments of add_written


def match_slowly(module: Architecture, split: Split, task: DecodableTask) -> tuple[list[bool], list[bool]]:
    """Returns the exact and the oracle matches, by a call of the model for each token of each item."""
    module.eval()
    exact, oracle = [], []
    assert isinstance(split.targets, Ragged)
    for item in range(len(split)):
        source = torch.from_numpy(split.inputs["source"][item].astype(np.int64))[None]
        answer = split.targets[item].tolist()
        choices, tokens = [task.begin], []
        for _ in answer:
            with torch.no_grad():
                scores = module(source, torch.tensor([choices]))[0, -1]
            choices.append(int(scores.argmax()))
            if task.end is not None:
                scores[task.end] = -torch.inf
            tokens.append(int(scores.argmax()))
        exact.append(choices[1:] == answer)
        oracle.append(tokens[:-1] == answer[:-1] if task.end is not None else exact[-1])
    return exact, oracle


def test_matches_equal_those_of_a_slow_loop(run: Path) -> None:
    task = copy_task()
    module = trained(run)
    for split in (task.generate("train", 0), task.generate("test", 0)):
        exact, oracle = match_slowly(module, split, task)
        _, score = scores(module, split, task)
        assert score.metrics["exact_match"] == pytest.approx(np.mean(exact))
        assert score.metrics["oracle_match"] == pytest.approx(np.mean(oracle))
        lengths = split.groups["length"]
        for length, values in score.groups["length"].items():
            assert values["exact_match"] == pytest.approx(np.mean(np.array(exact)[lengths == length]))
            assert values["oracle_match"] == pytest.approx(np.mean(np.array(oracle)[lengths == length]))


def test_exact_match_of_a_causal_model_equals_sequence_accuracy(run: Path) -> None:
    task = copy_task()
    module = trained(run)
    split = task.generate("train", 0)
    plain, score = scores(module, split, task)
    assert 0 < score.metrics["exact_match"] < score.metrics["oracle_match"] < 1
    assert score.metrics["exact_match"] == pytest.approx(plain.metrics["sequence_accuracy"])
    assert score.groups["length"][1]["exact_match"] == pytest.approx(plain.groups["length"][1]["sequence_accuracy"])


def test_without_an_end_there_is_no_oracle_match(run: Path) -> None:
    task = copy_task(eos=False)
    module = trained(run)
    split = task.generate("train", 0)
    _, score = scores(module, split, task)
    assert "oracle_match" not in score.metrics
    exact, _ = match_slowly(module, split, task)
    assert score.metrics["exact_match"] == pytest.approx(np.mean(exact))
    assert 0 < np.mean(exact) < 1


def trained(run: Path) -> Architecture:
    module = build(read_graph(run))
    checkpoint = Checkpoints(run / "checkpoints").latest()
    assert checkpoint is not None
    checkpoint.load_into(module)
    return module


def test_answers_of_a_large_split_are_sampled_at_even_distances(run: Path) -> None:
    task, module = copy_task(), trained(run)
    split = task.generate("train", 0)
    _, sample = scores(module, split, task, most=4)
    assert (sample.items, sample.written) == (60, 4)
    exact, _ = match_slowly(module, split, task)
    assert sample.metrics["exact_match"] == np.mean([exact[item] for item in (0, 19, 39, 59)])
    unwritten = set(sample.groups["length"]) - {int(split.groups["length"][item]) for item in (0, 19, 39, 59)}
    assert unwritten
    for length in unwritten:
        assert math.isnan(sample.groups["length"][length]["exact_match"])
        assert sample.within_groups("exact_match", {"length": length}) is None
    plain, none = scores(module, split, task, most=0)
    assert none == plain


def test_a_score_without_written_answers_is_unchanged(writer: Architecture) -> None:
    task = copy_task()
    split = task.generate("valid", 0)
    plain = evaluate(writer, Data(split, CPU), split, "valid", task)
    assert add_written(plain, torch.nn.Identity(), split, task, CPU) == plain  # not an archlang module
    classification = Ctl(train_size=1_000, iid_size=2, valid_size=2, test_size=2)
    assert add_written(plain, writer, classification.generate("valid", 0), classification, CPU) == plain
    empty = split.select(np.arange(0))
    assert add_written(plain, writer, empty, task, CPU) == plain


def test_writing_answers_does_not_change_training(writer: Architecture) -> None:
    task = copy_task()
    split = task.generate("valid", 0)
    writer.train()
    plain = evaluate(writer, Data(split, CPU), split, "valid", task)
    before = torch.get_rng_state()
    add_written(plain, writer, split, task, CPU)
    assert torch.get_rng_state().equal(before)
    assert writer.training


def test_writing_can_be_interrupted_after_each_token(writer: Architecture) -> None:
    task, asked = copy_task(), list[bool]()

    def stopping(limit: int) -> bool:
        asked.append(True)
        return len(asked) == limit

    # The longest answer has three symbols and an end.
    scores(writer, task.generate("train", 0), task, stopping=lambda: stopping(9))
    assert len(asked) == 4
    asked.clear()
    with pytest.raises(Interrupted):
        scores(writer, task.generate("train", 0), task, stopping=lambda: stopping(2))
    assert len(asked) == 2


# Runs


def test_a_run_stores_metrics_of_written_answers_and_compares_claims(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    test, valid = results["splits"]["test"], results["splits"]["valid"]
    assert (test["items"], test["written"]) == (20, 20)
    assert valid["metrics"]["oracle_match"] > valid["metrics"]["exact_match"]
    assert set(test["groups"]["length"]["6"]) == {"accuracy", "sequence_accuracy", "exact_match", "oracle_match"}
    assert [claim["measured"] for claim in results["claims"]] == [
        test["metrics"]["exact_match"],
        test["groups"]["length"]["6"]["exact_match"],
        valid["metrics"]["oracle_match"],
    ]


def test_a_new_evaluation_writes_the_same_answers(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    again = evaluation.evaluate_run(run, device="cpu")
    assert (
        json.loads(json.dumps({score.split: json_value(score.result()) for score in again.scores})) == results["splits"]
    )
    assert again.metrics == ("accuracy", "sequence_accuracy", "exact_match", "oracle_match")
    (fewer,) = evaluation.evaluate_run(run, ["test"], device="cpu", written=3).scores
    assert fewer.written == 3
    (none,) = evaluation.evaluate_run(run, ["test"], device="cpu", written=0).scores
    assert "exact_match" not in none.metrics


def test_a_metric_of_written_answers_cannot_select(point: Plan, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="is measured only at the end of a run"):
        plan_recipe(point.source.path, sets={"train.select": "valid.exact_match"})
