"""A detached value is equal and has no gradient."""

import torch

from archlang.blocks.detach import Detach


def test_a_detached_value_is_equal_without_a_gradient() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    y = Detach(d=4)(x)
    assert y.equal(x)
    assert not y.requires_grad
