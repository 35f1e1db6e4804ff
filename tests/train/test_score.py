"""Losses and metrics are those of a slow count by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Kind, LossRule, Unit
from archlang.train.data import Data
from archlang.train.score import Answers, Interrupted, Score, best_span, evaluate, forward, loss, scored

CPU = torch.device("cpu")


@dataclass(frozen=True)
class FakeTask:
    """A task of three symbols whose splits are made in the tests."""

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
    """Says, at each position, the symbol that stands there; of a sequence, its first symbol."""

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
    found = score(CLASSES, batch)
    assert found.items == 4
    assert found.metrics == {"accuracy": 0.5}
    assert found.groups["length"] == {1: {"accuracy": 1.0}, 2: {"accuracy": 0.5}, 3: {"accuracy": 0.0}}
    right, wrong, _ = F.log_softmax(torch.tensor([4.0, 0.0, 0.0]), 0).tolist()
    assert found.loss == pytest.approx(-(right + wrong) / 2)


def test_only_scored_positions_count() -> None:
    found = score(POSITIONS, unit=Unit.POSITION, metrics=("accuracy", "last_accuracy", "sequence_accuracy"))
    assert found.metrics == {"accuracy": pytest.approx(2 / 3), "last_accuracy": 0.5, "sequence_accuracy": 0.5}
    assert found.groups["length"][2]["accuracy"] == 1.0


def test_a_metric_among_items_that_are_in_several_groups() -> None:
    found = score(CLASSES)
    assert found.among("accuracy", {"length": 2, "first": 0}) == 1.0
    assert found.among("accuracy", {"length": 2, "first": 1}) == 0.0
    assert found.among("accuracy", {}) == 0.5
    assert found.among("accuracy", {"length": 9}) is None
    assert found.among("accuracy", {"colour": 1}) is None
    assert found.among("beauty", {}) is None


def test_the_loss_is_the_mean_over_what_is_scored() -> None:
    batch = Data(POSITIONS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 3, 3)
    by_hand = [F.cross_entropy(logits[item, place], torch.tensor(target))
               for item, place, target in ((0, 1, 1), (0, 2, 0), (1, 1, 1))]  # fmt: skip
    torch.testing.assert_close(loss(logits, batch), torch.stack(by_hand).mean())


def test_nothing_scored_is_no_loss_and_no_gradient() -> None:
    rows = Ragged.of([[1, 2]])
    batch = Data(Split({"x": rows}, rows, Ragged.of([[0, 0]], dtype=np.bool_)), CPU).batch(np.array([0]))
    logits = torch.randn(1, 2, 3, requires_grad=True)
    value = loss(logits, batch)
    torch.autograd.backward(value)
    assert value.item() == 0.0
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_a_model_of_two_fields_gets_the_lengths_of_both() -> None:
    class Pair(nn.Module):
        def forward(self, left: Tensor, right: Tensor, *, lengths: dict[str, Tensor]) -> Tensor:
            assert (left.shape, right.shape) == ((1, 2), (1, 3))
            return torch.stack([lengths["left"], lengths["right"]], 1)

    split = Split({"left": Ragged.of([[1, 1]]), "right": Ragged.of([[1, 1, 1]])}, np.array([0]))
    assert forward(Pair(), Data(split, CPU).batch(np.array([0]))).tolist() == [[2, 3]]


def test_training_notices_nothing_of_a_measurement() -> None:
    module = Repeats(False)
    module.train()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    evaluate(module, Data(CLASSES, CPU), CLASSES, "test", FakeTask())
    assert torch.rand(1) == expected
    assert module.training
    assert module.noise.training


def test_a_model_that_draws_at_test_time_is_measured_the_same_twice() -> None:
    class Draws(Repeats):
        def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
            return torch.rand(len(x), 3)

    first, second = (evaluate(Draws(False), Data(CLASSES, CPU), CLASSES, "test", FakeTask()) for _ in range(2))
    assert first == second


def test_a_measurement_can_be_given_up() -> None:
    module = Repeats(False)
    module.train()
    with pytest.raises(Interrupted):
        evaluate(module, Data(CLASSES, CPU), CLASSES, "test", FakeTask(), 1, lambda: len(module.seen) == 2)
    assert len(module.seen) == 2
    assert module.training


def test_a_group_in_which_nothing_is_scored_has_no_accuracy() -> None:
    rows = Ragged.of([[1], [1]])
    split = Split({"x": rows}, rows, Ragged.of([[1], [0]], dtype=np.bool_), {"length": np.array([1, 2])})
    found = score(split, unit=Unit.POSITION)
    assert math.isnan(found.groups["length"][2]["accuracy"])


SETS = Split(
    {"x": Ragged.of([[0, 1], [2]])},
    Ragged(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1]], dtype=np.bool_), np.array([0, 2, 3], dtype=np.int64)),
    groups={"length": np.array([2, 1])},
)


class Given(nn.Module):
    """Gives the logits that it holds for each symbol."""

    def __init__(self, logits: list[list[float]]) -> None:
        super().__init__()
        self.logits = torch.tensor(logits)

    def forward(self, x: Tensor, *, lengths: Tensor) -> Tensor:
        return self.logits[x]


def test_of_sets_every_member_is_a_question_of_its_own() -> None:
    batch = Data(SETS, CPU).batch(np.array([1, 0]))
    logits = torch.randn(2, 2, 3)
    entropies, squares = [], []
    for row, place, members in ((0, 0, (0, 1, 1)), (1, 0, (1, 0, 0)), (1, 1, (0, 1, 0))):
        for logit, member in zip(logits[row, place].tolist(), members, strict=True):
            probability = 1 / (1 + math.exp(-logit))
            entropies.append(-math.log(probability if member else 1 - probability))
            squares.append((probability - member) ** 2)
    assert loss(logits, batch).item() == pytest.approx(sum(entropies) / 9, rel=1e-5)
    assert loss(logits, batch, LossRule.SQUARES).item() == pytest.approx(sum(squares) / 9, rel=1e-5)


def test_a_member_of_a_set_is_what_is_likelier_than_not() -> None:
    module = Given([[0.1, -2.0, -0.1], [-1.0, 1.0, -1.0], [-1.0, 1.0, -1.0]])
    task = FakeTask(kind=Kind.SETS, unit=Unit.SEQUENCE, metrics=("accuracy", "token_accuracy"))
    found = evaluate(module, Data(SETS, CPU), SETS, "test", task)
    assert found.metrics == {"accuracy": 0.5, "token_accuracy": pytest.approx(2 / 3)}
    assert found.groups["length"] == {
        1: {"accuracy": 0.0, "token_accuracy": 0.0},
        2: {"accuracy": 1.0, "token_accuracy": 1.0},
    }


SPANS = Split(
    {"x": Ragged.of([[0, 1, 2, 0], [1, 2]])},
    np.array([[1, 2], [0, 1]], dtype=np.int64),
    Ragged.of([[0, 1, 1, 1], [1, 1]], dtype=np.bool_),
)


def test_a_span_is_the_likeliest_that_does_not_end_before_it_begins() -> None:
    logits = torch.randn(50, 7, 2)
    for row, (first, last) in zip(logits, best_span(logits).tolist(), strict=True):
        sums = {(i, j): float(row[i, 0] + row[j, 1]) for i in range(7) for j in range(i, 7)}
        assert sums[first, last] == max(sums.values())


def test_spans_are_where_they_may_be_and_their_loss_is_that_of_both_ends() -> None:
    module = Given([[9.0, 9.0], [1.0, 0.0], [0.0, 1.0]])
    task = FakeTask(kind=Kind.SPANS, metrics=("exact_match", "f1"))
    found = evaluate(module, Data(SPANS, CPU), SPANS, "test", task)
    # The last symbol of the first item is not before its first, and is the best place for both ends.
    assert found.metrics == {"exact_match": 0.5, "f1": 0.5}
    begin = F.cross_entropy(torch.tensor([[1.0, 0.0, 9.0], [1.0, 0.0, -math.inf]]), torch.tensor([0, 0]))
    end = F.cross_entropy(torch.tensor([[0.0, 1.0, 9.0], [0.0, 1.0, -math.inf]]), torch.tensor([1, 1]))
    assert found.loss == pytest.approx((begin + end).item() / 2)


@pytest.mark.parametrize("batch", [1, 100])
def test_perplexity_is_e_to_the_mean_loss_of_scored_positions(batch: int) -> None:
    found = score(POSITIONS, batch, unit=Unit.POSITION, metrics=("perplexity", "accuracy"))
    assert found.metrics["perplexity"] == pytest.approx(math.exp(found.loss))
    assert found.metrics["accuracy"] == pytest.approx(2 / 3)
    alone = score(POSITIONS.select([1]), unit=Unit.POSITION, metrics=("perplexity",))
    assert found.groups["length"][2]["perplexity"] == pytest.approx(alone.metrics["perplexity"])
    assert found.among("perplexity", {"length": 2}) == pytest.approx(alone.metrics["perplexity"])


def test_a_task_may_judge_by_itself() -> None:
    @dataclass(frozen=True)
    class Judge(FakeTask):
        def judge(self, split: Split, predictions: np.ndarray) -> dict[str, np.ndarray]:
            assert predictions.tolist() == [0, 1, 2, 1]
            assert split.notes["worth"].values.tolist() == [1, 2, 3, 4]
            return {"f1": split.notes["worth"].values / 4}

    split = Split(
        CLASSES.inputs, CLASSES.targets, groups=CLASSES.groups, notes={"worth": Ragged.of([[1], [2], [3], [4]])}
    )
    found = evaluate(Repeats(False), Data(split, CPU), split, "test", Judge(metrics=("f1", "accuracy")))
    assert found.metrics == {"f1": 0.625, "accuracy": 0.5}
    assert found.groups["length"][2] == {"f1": 0.625, "accuracy": 0.5}


def test_answers_may_come_from_anywhere() -> None:
    answers = Answers(POSITIONS)
    answers.put(np.array([1, 0]), np.array([[0, 1, 9], [0, 1, 9]]))
    assert answers.predictions.tolist() == [0, 1, 9, 0, 1]
    assert scored("test", POSITIONS, FakeTask(unit=Unit.POSITION), answers, 0.25).metrics == {
        "accuracy": pytest.approx(2 / 3)
    }


def test_where_a_span_may_not_be_no_gradient_is() -> None:
    batch = Data(SPANS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 4, 2, requires_grad=True)
    torch.autograd.backward(loss(logits, batch))
    assert logits.grad is not None
    assert batch.scored is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[~batch.scored] == 0).all()
    assert (logits.grad[batch.scored] != 0).all()
