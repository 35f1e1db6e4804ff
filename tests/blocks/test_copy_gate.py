"""The copy gate: its equation, copies and column dropout."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.copy_gate import CopyGate
from tests.blocks.conftest import agree


def test_each_channel_is_mixed_by_its_gate() -> None:
    def slow(g: Tensor, u: Tensor, h: Tensor) -> Tensor:
        numbers = zip(g.flatten(), u.flatten(), h.flatten(), strict=True)
        return torch.stack([a * b + (1 - a) * c for a, b, c in numbers]).reshape(g.shape)

    g, u, h = torch.rand(3, 2, 3, 4, dtype=torch.float64).unbind()
    agree(CopyGate(column_dropout=0.0, d=4), slow, g, u, h)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_closed_gate_copies_and_an_open_one_updates_bit_for_bit(dtype: torch.dtype) -> None:
    u, h = torch.randn(2, 5, 7, 4, dtype=dtype).unbind()
    gate = CopyGate(column_dropout=0.0, d=4)
    assert gate(torch.zeros_like(h), u, h).equal(h)
    assert gate(torch.ones_like(h), u, h).equal(u)


def test_column_dropout_closes_whole_columns_without_scaling() -> None:
    g, u, h = torch.full((50, 40, 8), 0.25), torch.ones(50, 40, 8), torch.zeros(50, 40, 8)
    y = CopyGate(column_dropout=0.1, d=8)(g, u, h)
    closed = y.eq(0).all(-1)
    assert closed.float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert y[~closed].eq(0.25).all()
