"""Dropout: its rate and scale in training."""

import pytest
import torch

from archlang.blocks.dropout import Dropout


def test_numbers_are_dropped_at_the_rate_and_the_others_scaled_up() -> None:
    y = Dropout(rate=0.2, d=100)(torch.ones(20, 50, 100))
    assert y.eq(0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert y[y != 0].unique().tolist() == pytest.approx([1.25])
