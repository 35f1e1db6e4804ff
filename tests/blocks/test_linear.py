"""Linear against sums of products, and its initial values."""

from collections.abc import Callable
from math import sqrt

import pytest
import torch
from torch import Tensor

from archlang.blocks.linear import Linear
from tests.blocks.conftest import by_column


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
def test_every_output_is_a_weighted_sum(bias: bool, shape: tuple[int, ...], agree: Callable[..., None]) -> None:
    block = Linear(out=5, bias=bias, init="torch", d=4)

    def slow(column: Tensor) -> Tensor:
        sums = [sum((block.weight[i, j] * column[j] for j in range(4)), torch.zeros(())) for i in range(5)]
        return torch.stack(sums) + (block.bias if bias else 0)

    agree(block, by_column(slow), torch.randn(shape, dtype=torch.float64))


@pytest.mark.parametrize(("init", "bound"), [("torch", 1 / sqrt(300)), ("xavier", sqrt(6 / 500))])
def test_weights_start_uniform(init: str, bound: float) -> None:
    block = Linear(out=200, bias=True, init=init, d=300)
    assert block.weight.abs().max().item() == pytest.approx(bound, rel=1e-3)
    assert block.weight.std().item() == pytest.approx(bound / sqrt(3), rel=0.01)
    assert block.bias.abs().max().item() == pytest.approx(1 / sqrt(300), rel=0.03)
