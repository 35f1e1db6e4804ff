"""The small network against loops."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.mlp import Mlp
from tests.blocks.conftest import agree, by_column


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
def test_columns_go_through_two_maps_to_another_width(shape: tuple[int, ...]) -> None:
    block = Mlp(hidden=5, out=3, activation="relu", dropout=0.0, d=4)

    def slow(column: Tensor) -> Tensor:
        hidden = [(block.hidden.weight[i] @ column + block.hidden.bias[i]).clamp(min=0) for i in range(5)]
        sums = [block.output.weight[o, i] * hidden[i] for o in range(3) for i in range(5)]
        return torch.stack(sums).view(3, 5).sum(1) + block.output.bias

    agree(block, by_column(slow), torch.randn(shape, dtype=torch.float64))


def test_dropout_is_on_the_hidden_units() -> None:
    block = Mlp(hidden=1, out=300, activation="relu", dropout=0.5, d=4)
    block.hidden.bias.data.fill_(1.0)
    y = block(torch.zeros(300, 4))
    assert y.eq(block.output.bias).all(-1).float().mean().item() == pytest.approx(0.5, abs=0.1)
