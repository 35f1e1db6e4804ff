"""Zeros for every token."""

import torch

from archlang.blocks.zeros import Zeros


def test_every_token_becomes_zeros_in_the_dtype_of_the_model() -> None:
    y = Zeros(d=4, vocab=9).to(torch.bfloat16)(torch.tensor([[3, 1, 2], [8, 0, 0]]))
    assert y.equal(torch.zeros(2, 3, 4, dtype=torch.bfloat16))
