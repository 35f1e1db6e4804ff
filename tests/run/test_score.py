"""Losses and metrics are those of a slow count by hand."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.run.data import Data
from archlang.run.score import Interrupted, Score, evaluate, forward, loss
from archlang.tasks.base import Ragged, Split, Unit

CPU = torch.device("cpu")


@dataclass(frozen=True)
class FakeTask:
    """A task of three symbols whose splits are made in the tests."""

    unit: Unit = Unit.SAMPLE
    metrics: tuple[str, ...] = ("accuracy",)
    vocabulary: tuple[str, ...] = ("a", "b", "c")
    breakdown: str = "length"
    version: int = 1

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
