"""Norms of groups of features against their equations, group by group."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.group_norms import GroupNorm, RmsNorm, UnitNorm
from tests.blocks.conftest import agree

X = (3, 4, 6)


def by_group(norm: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.cat([norm(x[..., :3]), norm(x[..., 3:])], -1)


def test_a_group_has_mean_0_and_variance_1_before_gain_and_bias() -> None:
    block = GroupNorm(groups=2, epsilon=1e-3, d=6).double()
    for parameter in block.parameters():
        nn.init.normal_(parameter)

    def normed(x: Tensor) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-3).sqrt()

    def slow(x: Tensor) -> Tensor:
        return block.weight * by_group(normed)(x) + block.bias

    agree(block, slow, torch.randn(X, dtype=torch.float64))


@pytest.mark.parametrize("gain", [True, False])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_group_is_divided_by_its_root_mean_square(groups: int, gain: bool) -> None:
    block = RmsNorm(groups=groups, epsilon=1e-3, gain=gain, shared=True, d=6).double()
    if block.weight is not None:
        nn.init.normal_(block.weight)

    def normed(x: Tensor) -> Tensor:
        y = x / (x.square().mean(-1, keepdim=True) + 1e-3).sqrt()
        return y if block.weight is None else block.weight * y

    agree(block, normed if groups == 1 else by_group(normed), torch.randn(X, dtype=torch.float64))


def test_a_gain_that_groups_do_not_share_has_a_number_for_each_feature() -> None:
    block = RmsNorm(groups=2, epsilon=1e-3, gain=True, shared=False, d=6).double()
    assert block.weight is not None
    nn.init.normal_(block.weight)
    plain = RmsNorm(groups=2, epsilon=1e-3, gain=False, shared=False, d=6)
    weight = block.weight
    agree(block, lambda x: weight * plain(x), torch.randn(X, dtype=torch.float64))


def test_a_group_gets_length_1() -> None:
    def slow(x: Tensor) -> Tensor:
        return by_group(lambda part: part / part.square().sum(-1, keepdim=True).sqrt())(x)

    agree(UnitNorm(groups=2, epsilon=1e-12, d=6), slow, torch.randn(X, dtype=torch.float64))


def test_a_zero_vector_stays_zero_with_a_finite_gradient() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    y = UnitNorm(groups=2, epsilon=1e-12, d=4)(x)
    y.sum().backward()
    assert y.eq(0).all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
