"""Sinusoids against their formula; START and END around ragged sequences."""

import math

import pytest
import torch
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.blocks.positions import AbsolutePositions, LearnedPositions, StartEnd, counted, sinusoid
from tests.blocks.conftest import agree, wave


@pytest.mark.parametrize("d", [1, 5, 8])
def test_sinusoids_follow_the_formula_also_before_zero(d: int) -> None:
    table = sinusoid(torch.arange(-20, 21, dtype=torch.float64), d)
    slow = torch.stack([wave(p, d) for p in range(-20, 21)])
    torch.testing.assert_close(table, slow, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("scaling", "scale"), [("none", 1.0), ("token_upscaling", 1.0), ("position_downscaling", 1 / math.sqrt(6))]
)
def test_positions_are_added_scaled(scaling: str, scale: float) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        return torch.stack([row + scale * torch.stack([wave(p, 6) for p in range(4)]) for row in x])

    block = AbsolutePositions(scaling=scaling, dropout=0.0, d=6)
    agree(block, slow, torch.randn(2, 4, 6, dtype=torch.float64), mask_n=None)


def test_positions_of_half_precision_states_are_exact_before_they_are_rounded() -> None:
    x = torch.zeros(1, 600, 8, dtype=torch.bfloat16)
    y = AbsolutePositions(scaling="none", dropout=0.0, d=8)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y[0, 599].float(), sinusoid(counted(600, torch.zeros(1)), 8)[599], atol=4e-3, rtol=0)


@pytest.mark.parametrize("start", [0, 2, 6])
def test_vectors_are_added_at_as_many_positions_as_there_are(start: int) -> None:
    block, x = LearnedPositions(most=5, init="normal", d=3), torch.randn(2, 4, 3)
    cache = BlockCache((True,), start)
    y = block.extend(cache, x) if start else block(x)
    for index in range(4):
        place = start + index
        assert torch.equal(y[:, index], x[:, index] + block.weight[place] if place < 5 else x[:, index])
    assert 0.01 < LearnedPositions(most=50, init="small", d=20).weight.std() < 0.03


def test_start_comes_first_and_end_right_after_the_last_real_position() -> None:
    block = StartEnd(d=3)
    x = torch.randn(3, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    y, real = block(x, mask_n=mask)
    assert real is not None
    assert real.sum(1).tolist() == [6, 4, 2]
    for row, length in enumerate([4, 2, 0]):
        assert y[row, 0].equal(block.start)
        assert y[row, 1 : length + 1].equal(x[row, :length])
        assert y[row, length + 1].equal(block.end)
        assert real[row, : length + 2].all()


def test_without_a_mask_end_comes_last() -> None:
    block = StartEnd(d=3)
    x = torch.randn(2, 4, 3)
    y, real = block(x)
    assert real is None
    assert y.equal(torch.cat((block.start.expand(2, 1, 3), x, block.end.expand(2, 1, 3)), dim=1))


def test_start_and_end_start_normal() -> None:
    block = StartEnd(d=10_000)
    assert block.start.std().item() == pytest.approx(1, abs=0.03)
    assert block.end.std().item() == pytest.approx(1, abs=0.03)
