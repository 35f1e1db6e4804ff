"""Learned sequences: the same for every sample."""

import pytest
import torch

from archlang.blocks.learned import Learned


def test_every_sample_gets_the_same_slots() -> None:
    block = Learned(slots=3, d=4, init="normal")
    y = block(5)
    assert y.shape == (5, 3, 4)
    assert all(slots.equal(block.weight) for slots in y)
    y.sum().backward()
    assert block.weight.grad is not None
    assert block.weight.grad.eq(5).all()


def test_slots_start_at_zero_or_normal() -> None:
    assert Learned(slots=3, d=4, init="zeros").weight.eq(0).all()
    assert Learned(slots=100, d=100, init="normal").weight.std().item() == pytest.approx(1, abs=0.03)
    assert Learned(slots=3, d=4, init="zeros").double()(0).shape == torch.Size([0, 3, 4])
