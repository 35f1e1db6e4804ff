"""Tokens as unit vectors."""

import torch

from archlang.blocks.one_hot import OneHot


def test_a_token_is_one_at_its_own_number_only() -> None:
    x = torch.tensor([[2, 0], [1, 1]])
    expected = torch.tensor([[[0.0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]])
    assert OneHot(vocab=3)(x).equal(expected)
    assert OneHot(vocab=3).double()(x).equal(expected.double())
