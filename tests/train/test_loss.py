"""Losses equal a slow count by hand."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import LossRule
from archlang.train.data import Batch, Data
from archlang.train.loss import NO_SMOOTHING, Smoothing, forward, mean_loss, position_losses
from tests.closeness import close
from tests.train.test_score import CPU, POINTERS, POSITIONS, SETS, SPANS


def test_the_loss_is_the_mean_over_scored_positions() -> None:
    batch = Data(POSITIONS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 3, 3)
    expected = [F.cross_entropy(logits[item, place], torch.tensor(target))
               for item, place, target in ((0, 1, 1), (0, 2, 0), (1, 1, 1))]  # fmt: skip
    close(mean_loss(logits, batch), torch.stack(expected).mean())


def test_without_scored_positions_loss_and_gradient_are_zero() -> None:
    rows = Ragged.of([[1, 2]])
    batch = Data(Split({"x": rows}, rows, Ragged.of([[0, 0]], dtype=np.bool_)), CPU).batch(np.array([0]))
    logits = torch.randn(1, 2, 3, requires_grad=True)
    value = mean_loss(logits, batch)
    torch.autograd.backward(value)
    assert value.item() == 0.0
    assert logits.grad is not None
    assert (logits.grad == 0).all()


def test_each_possible_member_of_a_set_has_a_loss() -> None:
    batch = Data(SETS, CPU).batch(np.array([1, 0]))
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
    batch = Data(SPANS, CPU).batch(np.array([0, 1]))
    logits = torch.randn(2, 4, 2, requires_grad=True)
    torch.autograd.backward(mean_loss(logits, batch))
    assert logits.grad is not None
    assert batch.scored is not None
    assert logits.grad.isfinite().all()
    assert (logits.grad[~batch.scored] == 0).all()
    assert (logits.grad[batch.scored] != 0).all()


@pytest.mark.parametrize("smoothing", [NO_SMOOTHING, Smoothing(0.1), Smoothing(other_class_weight=0.1)])
def test_padding_that_an_answer_cannot_point_at_has_no_part_in_the_loss(smoothing: Smoothing) -> None:
    batch = Data(POINTERS, CPU).batch(np.array([0, 1]))
    alone = Data(POINTERS, CPU).batch(np.array([1]))
    scores = torch.randn(2, 3, 3, requires_grad=True)

    def loss_of_second(logits: torch.Tensor, rows: Batch, places: slice) -> torch.Tensor:
        masked = forward(lambda *fields, lengths: logits[..., None], rows)
        return position_losses(masked, rows, smoothing=smoothing)[-1, places].sum()

    padded = loss_of_second(scores, batch, slice(2))
    close(padded, loss_of_second(scores[1:, :2, :2], alone, slice(2)))
    (gradient,) = torch.autograd.grad(padded, scores)
    assert gradient.isfinite().all()
    assert (gradient[1, :, 2] == 0).all()
