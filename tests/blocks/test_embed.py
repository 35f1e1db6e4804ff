"""Embed: its table, initial values and frozen row."""

from functools import partial
from math import sqrt

import pytest
import torch
from torch import Tensor

from archlang.blocks.embed import Embed
from tests.blocks.conftest import agree

embed = partial(Embed, d=6, init="normal", scaling="none", dropout=0.0, frozen=-1, frozen_start="drawn", vocab=9)


@pytest.mark.parametrize("scaling", ["none", "token_upscaling", "position_downscaling"])
def test_a_token_is_its_scaled_row(scaling: str) -> None:
    block = embed(scaling=scaling)

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        scale = sqrt(6) if scaling == "token_upscaling" else 1.0
        return torch.stack([torch.stack([scale * block.weight[token] for token in row]) for row in x])

    agree(block, slow, torch.tensor([[3, 0, 8], [3, 3, 1]]), mask_n=None)


@pytest.mark.parametrize(
    ("init", "deviation"), [("normal", 1.0), ("small", 0.02), ("kaiming", sqrt(2 / 200)), ("xavier", sqrt(2 / 1200))]
)
def test_init_selects_the_distribution_of_the_table(init: str, deviation: float) -> None:
    weight = embed(d=200, vocab=1000, init=init).weight
    assert weight.std().item() == pytest.approx(deviation, rel=0.01)
    assert weight.mean().item() == pytest.approx(0, abs=deviation / 100)
    if init == "xavier":  # uniform
        assert weight.abs().max().item() == pytest.approx(sqrt(6 / 1200), rel=1e-3)


def test_a_frozen_row_gets_no_gradient() -> None:
    block = embed(frozen=3)
    block(torch.tensor([[3, 1]])).sum().backward()
    assert block.weight.grad is not None
    assert block.weight.grad[3].eq(0).all()
    assert block.weight.grad[1].eq(1).all()


def test_a_frozen_row_may_start_at_zero() -> None:
    assert embed(frozen=3, frozen_start="zero").weight.eq(0).all(-1).tolist() == [row == 3 for row in range(9)]


def test_dropout_acts_in_training_only() -> None:
    block = embed(dropout=0.5)
    x = torch.zeros(1, 400, dtype=torch.int64)
    assert block(x).eq(0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert block.eval()(x).ne(0).all()
