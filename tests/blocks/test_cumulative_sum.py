"""Sums of the states so far, by a loop."""

import torch
from torch import Tensor

from archlang.blocks.cumulative_sum import CumulativeSum
from tests.blocks.conftest import agree


def test_each_position_has_the_sum_up_to_it() -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([sum((x[:, j] for j in range(i)), x[:, i]) for i in range(4)], 1)

    agree(CumulativeSum(d=3), slow, torch.randn(2, 4, 3, dtype=torch.float64))
