"""Zeros for every token."""

import pytest
import torch

from archlang.blocks.zeros import Zeros


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_token_becomes_zeros_in_the_dtype_of_the_model(dtype: torch.dtype) -> None:
    y = Zeros(d=4, vocab=9).to(dtype)(torch.tensor([[3, 1, 2], [8, 0, 0]]))
    assert y.equal(torch.zeros(2, 3, 4, dtype=dtype))


def test_its_state_is_empty() -> None:
    assert Zeros(d=4, vocab=9).state_dict() == {}
