"""The cross entropy of stablemax equals its definition, and stays finite."""

import math
from dataclasses import replace

import pytest
import torch

from archlang.record.mistakes import RunError
from archlang.tasks.kit.split import Form
from archlang.train.loss import mean_loss
from archlang.train.settings import stablemax_entropy
from tests.train.settings_of_a_run import SETTINGS
from tests.train.test_run_functions import batch


def slow_entropy(logits: list[float], target: int) -> float:
    s = [x + 1 if x >= 0 else 1 / (1 - x) for x in logits]
    return -math.log(s[target] / sum(s))


def test_the_loss_is_that_of_the_definition() -> None:
    logits = torch.tensor([[2.0, -3.0, 0.0], [-1.0, -0.5, 7.0]], dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([1, 2])
    losses = stablemax_entropy(logits, targets)
    expected = [slow_entropy(row, target) for row, target in zip(logits.tolist(), targets.tolist(), strict=True)]
    assert losses.tolist() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda x: stablemax_entropy(x, targets), logits)


def test_large_logits_have_a_finite_loss_and_gradient() -> None:
    logits = torch.tensor([[3e4, -3e4], [torch.finfo().min, 1.0]], requires_grad=True)
    losses = stablemax_entropy(logits, torch.tensor([1, 1]))
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert losses.dtype is torch.float32
    assert bool(losses.isfinite().all())
    assert bool(gradient.isfinite().all())


def test_a_recipe_with_stablemax_scores_with_it() -> None:
    settings = SETTINGS.changed(loss="stablemax")
    logits = torch.tensor([[[2.0, -3.0], [0.5, 1.0]]])
    scored = batch(torch.tensor([[0, 1]]), torch.tensor([[False, True]]))
    assert float(mean_loss(logits, scored, settings=settings)) == pytest.approx(slow_entropy([0.5, 1.0], 1), rel=1e-5)
    with pytest.raises(RunError, match="sets"):
        mean_loss(logits, replace(scored, form=Form.SETS), settings=settings)
