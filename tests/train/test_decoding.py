"""Answers that a model writes by itself are counted as a slow loop over single items counts them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch

import archlang
from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.record.checkpoint import Checkpoints
from archlang.record.mistakes import RunError
from archlang.record.reading import read_graph
from archlang.record.schemas import json_value
from archlang.runs import evaluation, training
from archlang.tasks.copy import Copy
from archlang.tasks.ctl import Ctl
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import DecodableTask, Task
from archlang.train.data import Data
from archlang.train.decoding import add_written
from archlang.train.score import Interrupted, Score, evaluate
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


def settled(**statics: object) -> Copy:
    short = {"train": Interval(1, 3), "valid": Interval(4, 4), "test": (5, 6), "symbols": 2, "eos": True}
    return Copy(**{**short, "train_size": 60, "valid_size": 20, "test_size": 10, **statics})  # type: ignore[arg-type] # statics of the task


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
    """A model that has learned nothing, but is right of what is short now and then."""
    torch.manual_seed(4)
    path = tmp_path / "writer.arch"
    path.write_text(WRITER)
    return archlang.load(path)


def measured(module: Architecture, split: Split, task: Task, **asked: object) -> tuple[Score, Score]:
    """Without what the model writes, and with it."""
    plain = evaluate(module, Data(split, CPU), split, "test", task)
    return plain, add_written(plain, module, split, task, CPU, **asked)  # type: ignore[arg-type] # arguments of add_written


def by_hand(module: Architecture, split: Split, task: DecodableTask) -> tuple[list[bool], list[bool]]:
    """One item at a time, the whole model for each token: which answers are right freely, and with their length."""
    module.eval()
    exact, oracle = [], []
    assert isinstance(split.targets, Ragged)
    for item in range(len(split)):
        source = torch.from_numpy(split.inputs["source"][item].astype(np.int64))[None]
        answer = split.targets[item].tolist()
        chosen, but_end = [task.begin], []
        for _ in answer:
            with torch.no_grad():
                scores = module(source, torch.tensor([chosen]))[0, -1]
            chosen.append(int(scores.argmax()))
            if task.end is not None:
                scores[task.end] = -torch.inf
            but_end.append(int(scores.argmax()))
        exact.append(chosen[1:] == answer)
        oracle.append(but_end[:-1] == answer[:-1] if task.end is not None else exact[-1])
    return exact, oracle


def test_answers_are_right_as_a_loop_by_hand_finds_them(run: Path) -> None:
    task = settled()
    module = trained(run)
    for split in (task.generate("train", 0), task.generate("test", 0)):
        exact, oracle = by_hand(module, split, task)
        _, found = measured(module, split, task)
        assert found.metrics["exact_match"] == pytest.approx(np.mean(exact))
        assert found.metrics["oracle_match"] == pytest.approx(np.mean(oracle))
        lengths = split.groups["length"]
        for length, values in found.groups["length"].items():
            assert values["exact_match"] == pytest.approx(np.mean(np.array(exact)[lengths == length]))
            assert values["oracle_match"] == pytest.approx(np.mean(np.array(oracle)[lengths == length]))


def test_an_exact_match_is_what_is_right_when_the_answer_before_is_shown(run: Path) -> None:
    task = settled()
    module = trained(run)
    split = task.generate("train", 0)
    plain, found = measured(module, split, task)
    assert 0 < found.metrics["exact_match"] < found.metrics["oracle_match"] < 1
    assert found.metrics["exact_match"] == pytest.approx(plain.metrics["sequence_accuracy"])
    assert found.groups["length"][1]["exact_match"] == pytest.approx(plain.groups["length"][1]["sequence_accuracy"])


def test_without_an_end_there_is_one_way_of_being_right(run: Path) -> None:
    task = settled(eos=False)
    module = trained(run)
    split = task.generate("train", 0)
    _, found = measured(module, split, task)
    assert "oracle_match" not in found.metrics
    exact, _ = by_hand(module, split, task)
    assert found.metrics["exact_match"] == pytest.approx(np.mean(exact))
    assert 0 < np.mean(exact) < 1


def trained(run: Path) -> Architecture:
    module = build(read_graph(run))
    saved = Checkpoints(run / "checkpoints").latest()
    assert saved is not None
    saved.load_into(module)
    return module


def test_some_answers_of_a_large_split_are_written_at_even_distances(run: Path) -> None:
    task, module = settled(), trained(run)
    split = task.generate("train", 0)
    _, some = measured(module, split, task, most=4)
    assert (some.items, some.written) == (60, 4)
    exact, _ = by_hand(module, split, task)
    assert some.metrics["exact_match"] == np.mean([exact[item] for item in (0, 19, 39, 59)])
    unwritten = set(some.groups["length"]) - {int(split.groups["length"][item]) for item in (0, 19, 39, 59)}
    assert unwritten
    for length in unwritten:
        assert math.isnan(some.groups["length"][length]["exact_match"])
        assert some.within_groups("exact_match", {"length": length}) is None
    plain, none = measured(module, split, task, most=0)
    assert none == plain


def test_what_writes_nothing_is_left_as_it_was(writer: Architecture) -> None:
    task = settled()
    split = task.generate("valid", 0)
    plain = evaluate(writer, Data(split, CPU), split, "valid", task)
    assert add_written(plain, torch.nn.Identity(), split, task, CPU) == plain  # no module of archlang
    tells = Ctl(train_size=1_000, iid_size=2, valid_size=2, test_size=2)
    assert add_written(plain, writer, tells.generate("valid", 0), tells, CPU) == plain  # a class is asked for
    empty = split.select(np.arange(0))
    assert add_written(plain, writer, empty, task, CPU) == plain


def test_training_notices_nothing_of_it(writer: Architecture) -> None:
    task = settled()
    split = task.generate("valid", 0)
    writer.train()
    plain = evaluate(writer, Data(split, CPU), split, "valid", task)
    before = torch.get_rng_state()
    add_written(plain, writer, split, task, CPU)
    assert torch.get_rng_state().equal(before)
    assert writer.training


class Looking:
    def __init__(self) -> None:
        self.told: list[tuple[str, int, int]] = []

    def written(self, split: str, done: int, total: int) -> None:
        self.told.append((split, done, total))


def test_whoever_looks_on_is_told_after_each_token(writer: Architecture) -> None:
    task, looking = settled(), Looking()
    measured(writer, task.generate("train", 0), task, watcher=looking)
    # The longest answer has three symbols and an end.
    assert looking.told == [("test", 15 * step, 60) for step in (1, 2, 3, 4)]


def test_it_can_be_interrupted_between_two_tokens(writer: Architecture) -> None:
    task, looking = settled(), Looking()
    with pytest.raises(Interrupted):
        measured(writer, task.generate("train", 0), task, watcher=looking, stopping=lambda: len(looking.told) == 2)
    assert len(looking.told) == 2


# Runs


def test_a_run_keeps_what_was_written_and_compares_claims_with_it(run: Path) -> None:
    kept = json.loads((run / "results.json").read_text())
    test, valid = kept["splits"]["test"], kept["splits"]["valid"]
    assert (test["items"], test["written"]) == (20, 20)
    assert valid["metrics"]["oracle_match"] > valid["metrics"]["exact_match"]
    assert set(test["groups"]["length"]["6"]) == {"accuracy", "sequence_accuracy", "exact_match", "oracle_match"}
    assert [claim["measured"] for claim in kept["claims"]] == [
        test["metrics"]["exact_match"],
        test["groups"]["length"]["6"]["exact_match"],
        valid["metrics"]["oracle_match"],
    ]


def test_a_run_measured_again_has_written_the_same(run: Path) -> None:
    kept = json.loads((run / "results.json").read_text())
    again = evaluation.evaluate_run(run, device="cpu")
    assert json.loads(json.dumps({score.split: json_value(score.result()) for score in again.scores})) == kept["splits"]
    assert again.metrics == ("accuracy", "sequence_accuracy", "exact_match", "oracle_match")
    (fewer,) = evaluation.evaluate_run(run, ["test"], device="cpu", written=3).scores
    assert fewer.written == 3
    (none,) = evaluation.evaluate_run(run, ["test"], device="cpu", written=0).scores
    assert "exact_match" not in none.metrics


def test_what_is_measured_at_the_end_only_cannot_select(point: Plan, tmp_path: Path) -> None:
    asked = plan_recipe(point.source.path, sets={"train.select": "valid.exact_match"})
    with pytest.raises(RunError, match="is measured when a run ends") as said:
        training.train(asked, tmp_path / "run", device="cpu")
    assert "select by one of accuracy, sequence_accuracy" in str(said.value)
