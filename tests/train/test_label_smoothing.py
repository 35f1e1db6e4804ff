"""Label smoothing equals a sum over classes."""

from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.train.data import Data
from archlang.train.loss import Smoothing, mean_loss
from archlang.train.settings import Settings
from tests.closeness import close


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


def test_smoothing_is_a_static_of_training(program: Path) -> None:
    smoothed = plan_recipe(program, sets={"train.label_smoothing": "0.1"}).train
    assert Settings(smoothed.statics).label_smoothing == 0.1
    assert Settings(plan_recipe(program).train.statics).label_smoothing == 0.0


def test_scored_positions_are_smoothed() -> None:
    rows, scored = Ragged.of([[1, 2], [0]]), Ragged.of([[0, 1], [1]], dtype=np.bool_)
    batch = Data(Split({"x": rows}, rows, scored), torch.device("cpu")).batch(np.array([0, 1]))
    logits = torch.randn(2, 2, 3)
    counted = torch.stack((logits[0, 1], logits[1, 0]))
    expected = Smoothing(0.1).losses(counted, torch.tensor([2, 0])).mean()
    close(mean_loss(logits, batch, smoothing=Smoothing(0.1)), expected)
    classes = Data(Split({"x": rows}, np.array([2, 0])), torch.device("cpu")).batch(np.array([0, 1]))
    close(mean_loss(counted, classes, smoothing=Smoothing(0.1)), expected)
