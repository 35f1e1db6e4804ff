"""Predictions equal those of a slow search."""

import numpy as np
import torch
from torch import Tensor, nn

from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Split
from archlang.train.data import Data
from archlang.train.loss import best_span, forward

CPU = torch.device("cpu")


def test_a_model_with_two_fields_gets_the_lengths_of_both() -> None:
    class Pair(nn.Module):
        def forward(self, left: Tensor, right: Tensor, *, lengths: dict[str, Tensor]) -> Tensor:
            assert (left.shape, right.shape) == ((1, 2), (1, 3))
            return torch.stack([lengths["left"], lengths["right"]], 1)

    split = Split({"left": Ragged.of([[1, 1]]), "right": Ragged.of([[1, 1, 1]])}, np.array([0]))
    assert forward(Pair(), Data(split, CPU).batch(np.array([0]))).tolist() == [[2, 3]]


def test_the_best_span_has_the_largest_sum_and_does_not_end_before_it_begins() -> None:
    logits = torch.randn(50, 7, 2)
    for row, (first, last) in zip(logits, best_span(logits).tolist(), strict=True):
        sums = {(i, j): float(row[i, 0] + row[j, 1]) for i in range(7) for j in range(i, 7)}
        assert sums[first, last] == max(sums.values())
