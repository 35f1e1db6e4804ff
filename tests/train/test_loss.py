"""Predictions and losses are those that a loop over samples and positions computes; label smoothing is its formula."""

import math
from math import log

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import LossRule
from archlang.train.data import Batch, DeviceSplit
from archlang.train.loss import NO_SMOOTHING, Smoothing, best_span, forward, mean_loss, position_losses
from tests.closeness import close
from tests.train.test_score import CPU, POINTERS, POSITIONS, SETS, SPANS


def test_a_model_with_two_fields_gets_the_lengths_of_both() -> None:
    class Pair(nn.Module):
        def forward(self, left: Tensor, right: Tensor, *, lengths: dict[str, Tensor]) -> Tensor:
            assert (left.shape, right.shape) == ((1, 2), (1, 3))
            return torch.stack([lengths["left"], lengths["right"]], 1)

    split = Split({"left": Ragged.of([[1, 1]]), "right": Ragged.of([[1, 1, 1]])}, np.array([0]))
    assert forward(Pair(), DeviceSplit(split, CPU).batch(np.array([0]))).tolist() == [[2, 3]]


def test_the_best_span_has_the_largest_sum_and_does_not_end_before_it_begins() -> None:
    logits = torch.randn(50, 7, 2)
    for row, (first, last) in zip(logits, best_span(logits).tolist(), strict=True):
        sums = {(i, j): float(row[i, 0] + row[j, 1]) for i in range(7) for j in range(i, 7)}
        assert sums[first, last] == max(sums.values())


@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.3])
def test_label_smoothing_is_that_of_torch(smoothing: float) -> None:
    logits, targets = torch.randn(5, 4, dtype=torch.float64), torch.tensor([0, 3, 1, 1, 2])
    expected = F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(Smoothing(smoothing).losses(logits, targets), expected, rtol=1e-6, atol=1e-6)
    # Classes that cannot be chosen have no part in it.
    choices = torch.arange(6).expand(5, 6) < 4
    masked = F.pad(logits, (0, 2), value=-torch.inf)
    torch.testing.assert_close(Smoothing(smoothing).losses(masked, targets, choices), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("smoothing", [0.0, 0.05, 0.3])
def test_each_other_class_has_the_same_weight(smoothing: float) -> None:
    logits, targets = torch.randn(5, 4, dtype=torch.float64, requires_grad=True), torch.tensor([0, 3, 1, 1, 2])
    expected = []
    for row, target in zip(logits, targets.tolist(), strict=True):
        probabilities = torch.exp(row) / torch.exp(row).sum()
        weights = [1 - smoothing if label == target else smoothing for label in range(4)]
        negative_minimum = sum(weight * log(weight) for weight in weights if weight)
        entropy = -(torch.tensor(weights, dtype=torch.float64) * torch.log(probabilities)).sum()
        expected.append(entropy + negative_minimum)
    losses = Smoothing(other_class_weight=smoothing).losses(logits, targets)
    torch.testing.assert_close(losses, torch.stack(expected), rtol=1e-10, atol=1e-10)
    (gradient,) = torch.autograd.grad(losses.sum(), logits, retain_graph=True)
    (expected_gradient,) = torch.autograd.grad(torch.stack(expected).sum(), logits)
    torch.testing.assert_close(gradient, expected_gradient, rtol=1e-10, atol=1e-10)


def test_scored_positions_are_smoothed() -> None:
    rows, scored = Ragged.of([[1, 2], [0]]), Ragged.of([[0, 1], [1]], dtype=np.bool_)
    batch = DeviceSplit(Split({"x": rows}, rows, scored), torch.device("cpu")).batch(np.array([0, 1]))
    logits = torch.randn(2, 2, 3)
    counted = torch.stack((logits[0, 1], logits[1, 0]))
    expected = Smoothing(0.1).losses(counted, torch.tensor([2, 0])).mean()
    close(mean_loss(logits, batch, smoothing=Smoothing(0.1)), expected)
    classes = DeviceSplit(Split({"x": rows}, np.array([2, 0])), torch.device("cpu")).batch(np.array([0, 1]))
    close(mean_loss(counted, classes, smoothing=Smoothing(0.1)), expected)


def test_the_loss_is_the_mean_over_scored_positions() -> None:
    batch = DeviceSplit(POSITIONS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 3, 3)
    expected = [F.cross_entropy(logits[item, place], torch.tensor(target))
               for item, place, target in ((0, 1, 1), (0, 2, 0), (1, 1, 1))]  # fmt: skip
    close(mean_loss(logits, batch), torch.stack(expected).mean())


def test_without_scored_positions_loss_and_gradient_are_zero() -> None:
    rows = Ragged.of([[1, 2]])
    batch = DeviceSplit(Split({"x": rows}, rows, Ragged.of([[0, 0]], dtype=np.bool_)), CPU).batch(np.array([0]))
    logits = torch.randn(1, 2, 3, requires_grad=True)
    value = mean_loss(logits, batch)
    torch.autograd.backward(value)
    assert value.item() == 0.0
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_each_possible_member_of_a_set_has_a_loss() -> None:
    batch = DeviceSplit(SETS, CPU).batch(np.array([1, 0]))
    logits = torch.randn(2, 2, 3)
    entropies, squares = [], []
    for row, place, members in ((0, 0, (0, 1, 1)), (1, 0, (1, 0, 0)), (1, 1, (0, 1, 0))):
        for logit, member in zip(logits[row, place].tolist(), members, strict=True):
            probability = 1 / (1 + math.exp(-logit))
            entropies.append(-math.log(probability if member else 1 - probability))
            squares.append((probability - member) ** 2)
    assert mean_loss(logits, batch).item() == pytest.approx(sum(entropies) / 9, rel=1e-5)
    assert mean_loss(logits, batch, LossRule.SQUARES).item() == pytest.approx(sum(squares) / 9, rel=1e-5)


def test_positions_that_a_span_cannot_have_get_no_gradient() -> None:
    batch = DeviceSplit(SPANS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 4, 2, requires_grad=True)
    torch.autograd.backward(mean_loss(logits, batch))
    assert logits.grad is not None
    assert batch.scored is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[~batch.scored] == 0).all()
    assert (logits.grad[batch.scored] != 0).all()


@pytest.mark.parametrize("smoothing", [NO_SMOOTHING, Smoothing(0.1), Smoothing(other_class_weight=0.1)])
def test_padding_that_an_answer_cannot_point_at_has_no_part_in_the_loss(smoothing: Smoothing) -> None:
    batch = DeviceSplit(POINTERS, CPU).batch(np.array([0, 1]))
    alone = DeviceSplit(POINTERS, CPU).batch(np.array([1]))
    scores = torch.randn(2, 3, 3, requires_grad=True)

    def loss_of_second(logits: torch.Tensor, rows: Batch, places: slice) -> torch.Tensor:
        masked = forward(lambda *fields, lengths: logits[..., None], rows)
        return position_losses(masked, rows, smoothing=smoothing)[-1, places].sum()

    padded = loss_of_second(scores, batch, slice(2))
    close(padded, loss_of_second(scores[1:, :2, :2], alone, slice(2)))
    (gradient,) = torch.autograd.grad(padded, scores)
    assert gradient.isfinite().all()
    assert (gradient[1, :, 2] == 0).all()
