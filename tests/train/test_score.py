"""Metrics and written answers equal those of a loop over items."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from archlang.backend.architecture import Architecture
from archlang.compile import build
from archlang.errors import ProgramError
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.ctl import Ctl
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import DecodableTask, Kind, Task, Unit
from archlang.train.data import DeviceSplit
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.reading import read_graph, read_results
from archlang.train.record.schemas import SplitResult
from archlang.train.runs import evaluation, training
from archlang.train.score import DEFAULT_ANSWERS, Interrupted, Score, add_written, evaluate
from archlang.types.statics import Interval
from tests.tasks.every import page

Copy = page("copy")

CPU = torch.device("cpu")


@dataclass(frozen=True)
class FakeTask:
    """A task of three symbols; the tests make its splits."""

    unit: Unit = Unit.SAMPLE
    metrics: tuple[str, ...] = ("accuracy",)
    vocabulary: tuple[str, ...] = ("a", "b", "c")
    breakdown: str = "length"
    version: int = 1
    kind: Kind = Kind.CLASSIFICATION
    in_distribution: tuple[str, ...] = ("train",)

    def split_names(self) -> tuple[str, ...]:
        return ("train",)

    def generate(self, split: str, seed: int) -> Split:
        raise NotImplementedError


class Repeats(nn.Module):
    """Predicts the symbol at each position, or the first symbol of a sequence."""

    def __init__(self, per_position: bool) -> None:
        super().__init__()
        self.per_position = per_position
        self.noise = nn.Dropout(0.5)
        self.seen: list[tuple[tuple[int, ...], list[int]]] = []

    def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
        self.seen.append((tuple(x.shape), lengths.tolist()))
        logits: Tensor = self.noise(4.0 * F.one_hot(x, 3))
        return logits if self.per_position else logits[:, 0]


CLASSES = Split(
    {"x": Ragged.of([[0, 1], [1], [2, 2, 2], [1, 0]])},
    np.array([0, 1, 0, 2]),
    groups={"length": np.array([2, 1, 3, 2]), "first": np.array([0, 1, 2, 1])},
)
POSITIONS = Split(
    {"x": Ragged.of([[0, 1, 2], [1, 1]])},
    Ragged.of([[0, 1, 0], [0, 1]]),
    Ragged.of([[0, 1, 1], [0, 1]], dtype=np.bool_),
    {"length": np.array([3, 2])},
)


def score(split: Split, batch: int = 1024, **task: object) -> Score:
    module = Repeats(isinstance(split.targets, Ragged))
    return evaluate(module, DeviceSplit(split, CPU), split, "test", FakeTask(**task), batch)  # type: ignore[arg-type] # fields of FakeTask


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_accuracy_of_samples_and_of_their_groups(batch: int) -> None:
    measured = score(CLASSES, batch)
    assert measured.items == 4
    assert measured.metrics == {"accuracy": 0.5}
    assert measured.result().groups["length"] == {1: {"accuracy": 1.0}, 2: {"accuracy": 0.5}, 3: {"accuracy": 0.0}}
    right, wrong, _ = F.log_softmax(torch.tensor([4.0, 0.0, 0.0]), 0).tolist()
    assert measured.loss == pytest.approx(-(right + wrong) / 2, rel=1e-5)


def test_only_scored_positions_count() -> None:
    measured = score(POSITIONS, unit=Unit.POSITION, metrics=("accuracy", "last_accuracy", "sequence_accuracy"))
    assert measured.metrics == {"accuracy": pytest.approx(2 / 3), "last_accuracy": 0.5, "sequence_accuracy": 0.5}
    assert measured.result().groups["length"][2]["accuracy"] == 1.0


def test_a_metric_over_the_items_of_several_groups() -> None:
    measured = score(CLASSES).result()
    assert measured.value("accuracy", {"length": 2, "first": 0}) == 1.0
    assert measured.value("accuracy", {"length": 2, "first": 1}) == 0.0
    assert measured.value("accuracy") == 0.5
    assert measured.value("accuracy", {"length": 9}) is None
    assert measured.value("accuracy", {"colour": 1}) is None
    assert measured.value("beauty") is None


def test_an_evaluation_does_not_change_training() -> None:
    module = Repeats(False)
    module.train()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    evaluate(module, DeviceSplit(CLASSES, CPU), CLASSES, "test", FakeTask())
    assert torch.rand(1) == expected
    assert module.training
    assert module.noise.training


def test_a_model_that_draws_at_test_time_has_the_same_score_twice() -> None:
    class Draws(Repeats):
        def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
            return torch.rand(len(x), 3)

    first, second = (evaluate(Draws(False), DeviceSplit(CLASSES, CPU), CLASSES, "test", FakeTask()) for _ in range(2))
    assert first.result() == second.result()


def test_an_evaluation_can_be_interrupted() -> None:
    module = Repeats(False)
    module.train()
    with pytest.raises(Interrupted):
        evaluate(module, DeviceSplit(CLASSES, CPU), CLASSES, "test", FakeTask(), 1, lambda: len(module.seen) == 2)
    assert len(module.seen) == 2
    assert module.training


def test_a_group_without_scored_positions_has_no_accuracy() -> None:
    rows = Ragged.of([[1], [1]])
    split = Split({"x": rows}, rows, Ragged.of([[1], [0]], dtype=np.bool_), {"length": np.array([1, 2])})
    measured = score(split, unit=Unit.POSITION)
    assert measured.result().groups["length"][2]["accuracy"] is None


SETS = Split(
    {"x": Ragged.of([[0, 1], [2]])},
    Ragged(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], dtype=np.bool_), np.array([0, 2, 3], dtype=np.int64)),
    groups={"length": np.array([2, 1])},
)


class FixedLogits(nn.Module):
    """Returns fixed logits for each symbol."""

    def __init__(self, logits: list[list[float]]) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
        return self.logits[x]


def test_a_set_holds_members_with_a_probability_of_at_least_one_half() -> None:
    module = FixedLogits([[0.1, -2.0, -0.1], [-1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]])
    task = FakeTask(kind=Kind.SETS, unit=Unit.SEQUENCE, metrics=("accuracy", "token_accuracy"))
    measured = evaluate(module, DeviceSplit(SETS, CPU), SETS, "test", task)
    assert measured.metrics == {"accuracy": 0.5, "token_accuracy": pytest.approx(2 / 3)}
    assert measured.result().groups["length"] == {
        1: {"accuracy": 0.0, "token_accuracy": 0.0},
        2: {"accuracy": 1.0, "token_accuracy": 1.0},
    }


SPANS = Split(
    {"x": Ragged.of([[0, 1, 2, 0], [1, 2]])},
    np.array([[1, 2], [0, 1]], dtype=np.int64),
    Ragged.of([[0, 1, 1, 1], [1, 1]], dtype=np.bool_),
)


def test_spans_are_scored_at_allowed_positions_with_the_loss_of_both_ends() -> None:
    module = FixedLogits([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0]])
    task = FakeTask(kind=Kind.SPANS, metrics=("exact_match", "f1"))
    measured = evaluate(module, DeviceSplit(SPANS, CPU), SPANS, "test", task)
    # In the first item, the best position of both ends is the last symbol.
    assert measured.metrics == {"exact_match": 0.5, "f1": 0.5}
    begin = F.cross_entropy(torch.tensor([[1.0, 0.0, 9.0], [1.0, 0.0, -math.inf]]), torch.tensor([0, 0]))
    end = F.cross_entropy(torch.tensor([[0.0, 1.0, 9.0], [0.0, 1.0, -math.inf]]), torch.tensor([1, 1]))
    assert measured.loss == pytest.approx((begin + end).item() / 2, rel=1e-5)


POINTERS = Split({"x": Ragged.of([[1, 2, 0], [2, 1]])}, Ragged.of([[2, 0, 1], [1, 0]]), points_at="x")


class FixedScores(FixedLogits):
    """A map: a feature for each pair."""

    def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
        return self.logits[x][..., None]


def test_no_answer_points_at_padding() -> None:
    # Column 2 is padding of the second item.
    module = FixedScores([[0.0, 1.0, 0.0], [0.0, 1.0, 9.0], [1.0, 2.0, 9.0]])
    task = FakeTask(kind=Kind.POINTING, unit=Unit.POSITION, metrics=("accuracy", "sequence_accuracy"))
    measured = evaluate(module, DeviceSplit(POINTERS, CPU), POINTERS, "test", task)
    assert measured.metrics == {"accuracy": 3 / 5, "sequence_accuracy": 0.0}
    first = F.cross_entropy(torch.tensor([[0.0, 1.0, 9.0], [1.0, 2.0, 9.0], [0.0, 1.0, 0.0]]), torch.tensor([2, 0, 1]))
    second = F.cross_entropy(torch.tensor([[1.0, 2.0], [0.0, 1.0]]), torch.tensor([1, 0]))
    assert measured.loss == pytest.approx((3 * first + 2 * second).item() / 5, rel=1e-5)


NUMBERS = Split(
    {"x": Ragged.of([[0, 1], [2]])},
    Ragged(np.array([[1.5], [0.0], [-2.0]], dtype=np.float32), np.array([0, 2, 3], dtype=np.int64)),
    Ragged.of([[1, 0], [1]], dtype=np.bool_),
    {"length": np.array([2, 1])},
)


@pytest.mark.parametrize("batch", [1, 100])
def test_numbers_have_the_squared_error_of_the_results_as_their_loss(batch: int) -> None:
    module = FixedLogits([[1.0], [7.0], [-4.0]])
    task = FakeTask(kind=Kind.REGRESSION, unit=Unit.POSITION, metrics=("squared_error",))
    measured = evaluate(module, DeviceSplit(NUMBERS, CPU), NUMBERS, "test", task, batch)
    assert measured.loss == pytest.approx((0.25 + 4.0) / 2)
    assert measured.metrics == {"squared_error": pytest.approx(measured.loss)}
    assert measured.result().groups["length"] == {1: {"squared_error": 4.0}, 2: {"squared_error": 0.25}}


@pytest.mark.parametrize("batch", [1, 100])
def test_perplexity_is_e_to_the_mean_loss_of_scored_positions(batch: int) -> None:
    measured = score(POSITIONS, batch, unit=Unit.POSITION, metrics=("perplexity", "accuracy"))
    assert measured.metrics["perplexity"] == pytest.approx(math.exp(measured.loss))
    assert measured.metrics["accuracy"] == pytest.approx(2 / 3)
    alone = score(POSITIONS.select([1]), unit=Unit.POSITION, metrics=("perplexity",))
    assert measured.result().groups["length"][2]["perplexity"] == pytest.approx(alone.metrics["perplexity"])


@pytest.mark.parametrize("batch", [1, 100])
def test_losses_are_averaged_by_the_length_of_the_context(batch: int) -> None:
    measured = score(replace(POSITIONS, scored=None), batch, unit=Unit.POSITION, metrics=("perplexity",))
    right, wrong, _ = F.log_softmax(torch.tensor([4.0, 0.0, 0.0]), 0).tolist()
    assert measured.result().contexts == pytest.approx({1: -(right + wrong) / 2, 2: -(2 * right + wrong) / 3}, rel=1e-5)
    assert score(POSITIONS, unit=Unit.POSITION).contexts == {}


def test_bits_per_byte_divide_the_bits_of_all_losses_by_the_bytes_of_the_items() -> None:
    sizes = Ragged.table(np.arange(1, len(POSITIONS) + 1)[:, None])
    measured = score(replace(POSITIONS, notes={"bytes": sizes}), unit=Unit.POSITION, metrics=("bits_per_byte",))
    bits = measured.loss * 3 / math.log(2)
    assert measured.metrics == {"bits_per_byte": pytest.approx(bits / sizes.values.sum())}


def test_a_task_can_judge_predictions() -> None:
    @dataclass(frozen=True)
    class Judge(FakeTask):
        def judge(self, split: Split, predictions: np.ndarray) -> dict[str, np.ndarray]:
            assert predictions.tolist() == [0, 1, 2, 1]
            assert split.notes["worth"].values.tolist() == [1, 2, 3, 4]
            return {"f1": split.notes["worth"].values / 4}

    split = Split(
        CLASSES.inputs, CLASSES.targets, groups=CLASSES.groups, notes={"worth": Ragged.of([[1], [2], [3], [4]])}
    )
    measured = evaluate(Repeats(False), DeviceSplit(split, CPU), split, "test", Judge(metrics=("f1", "accuracy")))
    assert measured.metrics == {"f1": 0.625, "accuracy": 0.5}
    assert measured.result().groups["length"][2] == {"f1": 0.625, "accuracy": 0.5}


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


def copy_task(**statics: object) -> Any:  # Any: a `DecodedPage`
    defaults = {"train": Interval(1, 3), "valid": Interval(4, 4), "test": (5, 6), "symbols": 2, "eos": True}
    return Copy(**{**defaults, "train_size": 60, "valid_size": 20, "test_size": 10, **statics})


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
    plain = evaluate(module, DeviceSplit(split, CPU), split, "test", task)
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
        for length, values in score.result().groups["length"].items():
            assert values["exact_match"] == pytest.approx(np.mean(np.array(exact)[lengths == length]))
            assert values["oracle_match"] == pytest.approx(np.mean(np.array(oracle)[lengths == length]))


def test_exact_match_of_a_causal_model_equals_sequence_accuracy(run: Path) -> None:
    task = copy_task()
    module = trained(run)
    split = task.generate("train", 0)
    plain, score = scores(module, split, task)
    assert 0 < score.metrics["exact_match"] < score.metrics["oracle_match"] < 1
    assert score.metrics["exact_match"] == pytest.approx(plain.metrics["sequence_accuracy"])
    shortest = score.result().groups["length"][1]
    assert shortest["exact_match"] == pytest.approx(shortest["sequence_accuracy"])


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
    unwritten = set(sample.result().groups["length"]) - {int(split.groups["length"][item]) for item in (0, 19, 39, 59)}
    assert unwritten
    for length in unwritten:
        assert sample.result().value("exact_match", {"length": length}) is None
    plain, none = scores(module, split, task, most=0)
    assert none is plain


def test_a_score_without_written_answers_is_unchanged(writer: Architecture) -> None:
    task = copy_task()
    split = task.generate("valid", 0)
    plain = evaluate(writer, DeviceSplit(split, CPU), split, "valid", task)
    assert add_written(plain, torch.nn.Identity(), split, task, CPU) is plain  # not an archlang module
    classification = Ctl(train_size=1_000, iid_size=2, valid_size=2, test_size=2)
    assert add_written(plain, writer, classification.generate("valid", 0), classification, CPU) is plain
    empty = split.select(np.arange(0))
    assert add_written(plain, writer, empty, task, CPU) is plain


def test_writing_answers_does_not_change_training(writer: Architecture) -> None:
    task = copy_task()
    split = task.generate("valid", 0)
    writer.train()
    plain = evaluate(writer, DeviceSplit(split, CPU), split, "valid", task)
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
    def again(splits: list[str] | None = None, written: int = DEFAULT_ANSWERS) -> Mapping[str, SplitResult]:
        return evaluation.evaluate_run(run, splits, device="cpu", written=written).splits

    first = read_results(run)
    assert first is not None
    assert again() == first.splits
    assert list(first.splits["test"].metrics) == ["accuracy", "sequence_accuracy", "exact_match", "oracle_match"]
    assert again(["test"], 3)["test"].written == 3
    assert "exact_match" not in again(["test"], 0)["test"].metrics


def test_a_metric_of_written_answers_cannot_select(point: Plan, tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="is measured only at the end of a run"):
        plan_recipe(point.source.path, sets={"train.select": "valid.exact_match"})
