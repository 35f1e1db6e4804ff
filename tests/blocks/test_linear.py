"""Linear against sums of products, and its initial values."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.linear import Linear
from tests.blocks.conftest import agree, by_column


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
def test_every_output_is_a_weighted_sum(bias: bool, shape: tuple[int, ...]) -> None:
    block = Linear(out=5, bias=bias, init="torch", d=4)

    def slow(column: Tensor) -> Tensor:
        sums = [sum((block.weight[i, j] * column[j] for j in range(4)), torch.zeros(())) for i in range(5)]
        return torch.stack(sums) + (block.bias if bias else 0)

    agree(block, by_column(slow), torch.randn(shape, dtype=torch.float64))
