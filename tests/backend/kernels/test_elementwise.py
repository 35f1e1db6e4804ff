"""Elementwise functions of many numbers against torch's: results, first and second derivatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.backend.kernels import elementwise
from archlang.backend.kernels.elementwise import exp, tanh
from tests.closeness import same_gradients

Function = Callable[[Tensor], Tensor]
FUNCTIONS: list[tuple[Function, Function]] = [(exp, torch.exp), (tanh, torch.tanh)]
EXTREMES = [-torch.inf, -1e30, -1000.0, -104.0, -90.0, -1e-6, 0.0, 1e-6, 20.0, 1000.0, torch.inf, torch.nan]


@pytest.fixture(autouse=True)
def _of_few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "_LEAST_FOR_EXP", 1)
    monkeypatch.setattr(elementwise, "_LEAST_FOR_TANH", 1)


@pytest.mark.parametrize(("fast", "plain"), FUNCTIONS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 0)])
def test_results_and_derivatives_are_those_of_torch(
    fast: Function, plain: Function, dtype: torch.dtype, tolerance: float
) -> None:
    x = torch.linspace(-9, 3, 120, dtype=dtype).view(2, 3, 4, 5).requires_grad_()
    same_gradients(fast(x), plain(x), [x], tolerance=tolerance)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), plain(x), atol=tolerance, rtol=0)


@pytest.mark.parametrize(("fast", "plain"), FUNCTIONS)
def test_extreme_numbers_have_the_results_of_torch(fast: Function, plain: Function) -> None:
    x = torch.tensor(EXTREMES)
    torch.testing.assert_close(fast(x), plain(x), atol=1e-7, rtol=1e-5, equal_nan=True)


def test_small_numbers_keep_their_precision() -> None:
    x = torch.logspace(-30, 0, 100)
    torch.testing.assert_close(tanh(x), x.double().tanh().float(), atol=0, rtol=2e-7)


@pytest.mark.parametrize(("fast", "plain"), FUNCTIONS)
@pytest.mark.parametrize("shape", [(2, 1, 3, 5), (0, 2, 3, 4), (7,)])
def test_every_layout_is_computed(fast: Function, plain: Function, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    layouts = [x, x.expand(2, *shape)]
    if x.dim() == 4:
        layouts += [x.permute(0, 2, 3, 1), x.contiguous(memory_format=torch.channels_last), x[..., ::2]]
    for own in layouts:
        torch.testing.assert_close(fast(own), plain(own), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(("fast", "plain"), FUNCTIONS)
def test_derivatives_can_be_differentiated_again(fast: Function, plain: Function) -> None:
    x = torch.randn(3, 5, requires_grad=True)
    first = [torch.autograd.grad(own(x).square().sum(), x, create_graph=True)[0] for own in (fast, plain)]
    same_gradients(first[0], first[1], [x], tolerance=1e-5)


@pytest.mark.parametrize(("fast", "plain"), FUNCTIONS)
def test_transforms_of_torch_func_compute_torch_s_own(fast: Function, plain: Function) -> None:
    x = torch.randn(4, 3)
    jacobians = [torch.func.vmap(torch.func.jacrev(own))(x) for own in (fast, plain)]
    torch.testing.assert_close(*jacobians)
