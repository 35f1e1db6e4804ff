"""Softmax by loops, over features and over the real positions."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.softmax import Softmax, SoftmaxPositions
from tests.blocks.conftest import agree, by_column

RAGGED = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])


def by_formula(numbers: list[Tensor]) -> list[Tensor]:
    total = sum((number.exp() for number in numbers[1:]), numbers[0].exp())
    return [number.exp() / total for number in numbers]


def test_the_features_of_each_position_sum_to_1() -> None:
    slow = by_column(lambda column: torch.stack(by_formula(list(column))))
    agree(Softmax(d=3), slow, torch.randn(2, 4, 3, dtype=torch.float64))


@pytest.mark.parametrize("mask", [None, RAGGED], ids=["no mask", "ragged"])
def test_the_real_positions_of_each_feature_sum_to_1(mask: Tensor | None) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        y = torch.zeros_like(x)
        for b in range(len(x)):
            real = [i for i in range(4) if mask_n is None or mask_n[b, i]]
            for c in range(3 if real else 0):
                for i, weight in zip(real, by_formula([x[b, i, c] for i in real]), strict=True):
                    y[b, i, c] = weight
        return y

    agree(SoftmaxPositions(d=3), slow, torch.randn(3, 4, 3, dtype=torch.float64), mask_n=mask)
