"""Feedforward against loops, and its initialisation."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from archlang.blocks.feedforward import Feedforward
from tests.blocks.conftest import agree, by_column

feedforward = partial(
    Feedforward, ff=5, activation="relu", dropout=0.0, output_dropout=0.0, bias=0.0, bias_init="drawn", init="relu",
    gain=1.0, d=4,
)  # fmt: skip
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: torch.maximum(x, torch.zeros_like(x)),
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "tanh": lambda x: 1 - 2 / (1 + torch.exp(2 * x)),
}


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
def test_columns_go_through_two_maps(activation: str, shape: tuple[int, ...]) -> None:
    block = feedforward(activation=activation)

    def slow(column: Tensor) -> Tensor:
        hidden = [ACTIVATIONS[activation](block.hidden.weight[i] @ column + block.hidden.bias[i]) for i in range(5)]
        sums = [block.output.weight[o, i] * hidden[i] for o in range(4) for i in range(5)]
        return torch.stack(sums).view(4, 5).sum(1) + block.output.bias

    agree(block, by_column(slow), torch.randn(shape, dtype=torch.float64))


def test_biases_of_xavier_start_near_zero() -> None:
    block = feedforward(ff=300, d=200, init="xavier")
    for bias in (block.hidden.bias, block.output.bias):
        assert bias.std().item() == pytest.approx(1e-6, rel=0.2)


def test_a_constant_bias_is_in_every_channel() -> None:
    block = feedforward(bias=-3.0, bias_init="constant")
    assert block.output.bias.eq(-3).all()
    assert block.hidden.bias.ne(-3).all()


def test_dropout_is_inside_and_output_dropout_on_the_result() -> None:
    inside = feedforward(dropout=0.5, ff=1, d=300)
    inside.hidden.bias.data.fill_(1.0)
    y = inside(torch.zeros(200, 300))
    assert y.eq(inside.output.bias).all(-1).float().mean().item() == pytest.approx(0.5, abs=0.1)
    outside = feedforward(output_dropout=0.5, ff=1, d=300)
    assert outside(torch.zeros(200, 300)).eq(0).float().mean().item() == pytest.approx(0.5, abs=0.02)
