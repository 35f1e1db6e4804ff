"""Dropout with our own random numbers: like torch's except for the numbers, and only where it is faster."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.func import vmap

from archlang.backend.kernels.dropout import dropout, is_drawn_here


def is_torchs(x: Tensor, rate: float, training: bool = True) -> bool:
    """Returns whether torch draws the numbers."""
    torch.manual_seed(3)
    ours = dropout(x, rate, training)
    torch.manual_seed(3)
    return torch.equal(ours, F.dropout(x, rate, training))


@pytest.mark.parametrize("rate", [0.05, 0.1, 0.5, 0.9])
def test_elements_are_dropped_at_the_rate_and_the_mean_stays(rate: float) -> None:
    x = torch.ones(401, 499, dtype=torch.float64)
    y = dropout(x, rate, True)
    count, dropped = x.numel(), int((y == 0).sum())
    deviation = (count * rate * (1 - rate)) ** 0.5
    assert abs(dropped - count * rate) < 5 * deviation
    remaining = y[y != 0]
    torch.testing.assert_close(remaining, torch.full_like(remaining, 1 / (1 - rate)), rtol=1e-15, atol=0)


def test_elements_of_one_draw_are_dropped_independently() -> None:
    dropped = (dropout(torch.ones(4 * 50_000), 0.5, True) == 0).view(-1, 4)
    together = torch.zeros(16).index_add_(0, (dropped * torch.tensor([1, 2, 4, 8])).sum(1), torch.ones(50_000))
    # Each of the 16 combinations, within five standard deviations of a binomial.
    assert float((together - 50_000 / 16).abs().max()) < 5 * (50_000 / 16 * 15 / 16) ** 0.5


@pytest.mark.parametrize("count", [1 << 13, (1 << 13) + 1, (1 << 13) + 3])
def test_every_count_of_elements_gets_numbers(count: int) -> None:
    y = dropout(torch.ones(count), 0.5, True)
    assert y.shape == (count,)
    assert not is_torchs(torch.ones(count), 0.5)
    assert 0 < int((y[-8:] == 0).sum()) + int((y[:-8] == 0).sum()) < count


def test_gradients_pass_kept_elements_only() -> None:
    x = torch.randn(100, 100, dtype=torch.float64, requires_grad=True)
    y = dropout(x, 0.3, True)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x.detach(), y.detach(), rtol=1e-12, atol=0)


def test_the_same_seed_draws_the_same_numbers() -> None:
    x = torch.ones(1 << 14, dtype=torch.bfloat16)
    torch.manual_seed(5)
    first, second = dropout(x, 0.5, True), dropout(x, 0.5, True)
    torch.manual_seed(5)
    assert torch.equal(dropout(x, 0.5, True), first)
    assert first.dtype == x.dtype
    assert not torch.equal(first, second)


def test_nothing_is_dropped_outside_of_training_or_at_rate_zero() -> None:
    x = torch.randn(1 << 14)
    assert torch.equal(dropout(x, 0.5, False), x)
    assert torch.equal(dropout(x, 0.0, True), x)
    assert torch.equal(dropout(x, 1.0, True), torch.zeros_like(x))


def test_stacked_models_are_left_to_torch() -> None:
    dropped = vmap(lambda x: dropout(x, 0.5, True), randomness="different")(torch.ones(3, 1 << 14))
    assert not torch.equal(dropped[0], dropped[1])


@pytest.mark.parametrize(("count", "rate"), [(1 << 12, 0.5), (1 << 14, 5e-5), (1 << 14, 0.9995)])
def test_few_elements_and_rates_too_extreme_for_sixteen_bits_are_left_to_torch(count: int, rate: float) -> None:
    assert is_torchs(torch.ones(count), rate)


def test_torch_compile_traces_torchs_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert not is_drawn_here(torch.zeros(1), 1 << 20)
