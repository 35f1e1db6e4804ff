"""Metrics equal a slow count by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, Unit
from archlang.train.data import Data
from archlang.train.score import Answers, Interrupted, Score, evaluate, make_score

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
    return evaluate(module, Data(split, CPU), split, "test", FakeTask(**task), batch)  # type: ignore[arg-type] # fields of FakeTask


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_accuracy_of_samples_and_of_their_groups(batch: int) -> None:
    measured = score(CLASSES, batch)
    assert measured.items == 4
    assert measured.metrics == {"accuracy": 0.5}
    assert measured.groups["length"] == {1: {"accuracy": 1.0}, 2: {"accuracy": 0.5}, 3: {"accuracy": 0.0}}
    right, wrong, _ = F.log_softmax(torch.tensor([4.0, 0.0, 0.0]), 0).tolist()
    assert measured.loss == pytest.approx(-(right + wrong) / 2, rel=1e-5)


def test_only_scored_positions_count() -> None:
    measured = score(POSITIONS, unit=Unit.POSITION, metrics=("accuracy", "last_accuracy", "sequence_accuracy"))
    assert measured.metrics == {"accuracy": pytest.approx(2 / 3), "last_accuracy": 0.5, "sequence_accuracy": 0.5}
    assert measured.groups["length"][2]["accuracy"] == 1.0


def test_a_metric_over_the_items_of_several_groups() -> None:
    measured = score(CLASSES)
    assert measured.within_groups("accuracy", {"length": 2, "first": 0}) == 1.0
    assert measured.within_groups("accuracy", {"length": 2, "first": 1}) == 0.0
    assert measured.within_groups("accuracy", {}) == 0.5
    assert measured.within_groups("accuracy", {"length": 9}) is None
    assert measured.within_groups("accuracy", {"colour": 1}) is None
    assert measured.within_groups("beauty", {}) is None


def test_an_evaluation_does_not_change_training() -> None:
    module = Repeats(False)
    module.train()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    evaluate(module, Data(CLASSES, CPU), CLASSES, "test", FakeTask())
    assert torch.rand(1) == expected
    assert module.training
    assert module.noise.training


def test_a_model_that_draws_at_test_time_has_the_same_score_twice() -> None:
    class Draws(Repeats):
        def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
            return torch.rand(len(x), 3)

    first, second = (evaluate(Draws(False), Data(CLASSES, CPU), CLASSES, "test", FakeTask()) for _ in range(2))
    assert first == second


def test_an_evaluation_can_be_interrupted() -> None:
    module = Repeats(False)
    module.train()
    with pytest.raises(Interrupted):
        evaluate(module, Data(CLASSES, CPU), CLASSES, "test", FakeTask(), 1, lambda: len(module.seen) == 2)
    assert len(module.seen) == 2
    assert module.training


def test_a_group_without_scored_positions_has_no_accuracy() -> None:
    rows = Ragged.of([[1], [1]])
    split = Split({"x": rows}, rows, Ragged.of([[1], [0]], dtype=np.bool_), {"length": np.array([1, 2])})
    measured = score(split, unit=Unit.POSITION)
    assert math.isnan(measured.groups["length"][2]["accuracy"])


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
    measured = evaluate(module, Data(SETS, CPU), SETS, "test", task)
    assert measured.metrics == {"accuracy": 0.5, "token_accuracy": pytest.approx(2 / 3)}
    assert measured.groups["length"] == {
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
    measured = evaluate(module, Data(SPANS, CPU), SPANS, "test", task)
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
    measured = evaluate(module, Data(POINTERS, CPU), POINTERS, "test", task)
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
    measured = evaluate(module, Data(NUMBERS, CPU), NUMBERS, "test", task, batch)
    assert measured.loss == pytest.approx((0.25 + 4.0) / 2)
    assert measured.metrics == {"squared_error": pytest.approx(measured.loss)}
    assert measured.groups["length"] == {1: {"squared_error": 4.0}, 2: {"squared_error": 0.25}}


@pytest.mark.parametrize("batch", [1, 100])
def test_perplexity_is_e_to_the_mean_loss_of_scored_positions(batch: int) -> None:
    measured = score(POSITIONS, batch, unit=Unit.POSITION, metrics=("perplexity", "accuracy"))
    assert measured.metrics["perplexity"] == pytest.approx(math.exp(measured.loss))
    assert measured.metrics["accuracy"] == pytest.approx(2 / 3)
    alone = score(POSITIONS.select([1]), unit=Unit.POSITION, metrics=("perplexity",))
    assert measured.groups["length"][2]["perplexity"] == pytest.approx(alone.metrics["perplexity"])
    assert measured.within_groups("perplexity", {"length": 2}) == pytest.approx(alone.metrics["perplexity"])


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
    measured = evaluate(Repeats(False), Data(split, CPU), split, "test", Judge(metrics=("f1", "accuracy")))
    assert measured.metrics == {"f1": 0.625, "accuracy": 0.5}
    assert measured.groups["length"][2] == {"f1": 0.625, "accuracy": 0.5}


def test_a_score_can_be_made_of_any_answers() -> None:
    answers = Answers(POSITIONS)
    answers.put(np.array([1, 0]), np.array([[0, 1, 9], [0, 1, 9]]))
    assert answers.predictions.tolist() == [0, 1, 9, 0, 1]
    assert make_score("test", POSITIONS, FakeTask(unit=Unit.POSITION), answers, 0.25).metrics == {
        "accuracy": pytest.approx(2 / 3)
    }
