"""The gate against its formula, and its initial values."""

from math import sqrt

import pytest
import torch
from torch import Tensor

from archlang.blocks.gate import Gate
from tests.blocks.conftest import agree, by_column


def test_a_gate_is_the_sigmoid_of_two_maps() -> None:
    block = Gate(ff=5, dropout=0.0, init="torch", d=4)

    def slow(column: Tensor) -> Tensor:
        hidden = block.hidden.weight @ column + block.hidden.bias
        hidden = torch.stack([unit * (1 + torch.erf(unit / sqrt(2))) / 2 for unit in hidden])
        return 1 / (1 + torch.exp(-(block.output.weight @ hidden + block.output.bias)))

    agree(block, by_column(slow), torch.randn(2, 3, 4, dtype=torch.float64))


def test_a_gate_starts_half_open() -> None:
    gate = Gate(ff=64, dropout=0.0, init="xavier", d=32)(torch.zeros(1, 1, 32))
    torch.testing.assert_close(gate, torch.full_like(gate, 0.5), atol=1e-5, rtol=0)


def test_dropout_reaches_the_logits() -> None:
    block = Gate(ff=1, dropout=0.5, init="torch", d=300)
    gate = block(torch.zeros(100, 300))
    assert gate.eq(0.5).float().mean().item() == pytest.approx(0.5, abs=0.02)
