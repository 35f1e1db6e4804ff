"""Claims about linear maps of many numbers by oneDNN: only the time changes."""

import time
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels import linear as kernel
from archlang.backend.kernels.linear import KernelLinear, linear

pytestmark = pytest.mark.skipif(not kernel._HAS_BOTH, reason="this torch has no oneDNN")


@pytest.fixture(autouse=True)
def always_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_LEAST_PRODUCTS", 1)
    monkeypatch.setattr(kernel, "_LEAST_SIDE", 1)


def results(function: Callable[..., Tensor], shape: tuple[int, ...], bias: bool) -> list[Tensor]:
    """Returns the result, and its first and second derivatives."""
    torch.manual_seed(0)
    sizes = (shape, (5, shape[-1]), *([(5,)] if bias else []))
    inputs = [torch.randn(size).requires_grad_() for size in sizes]
    y = function(*inputs)
    firsts = torch.autograd.grad(y.square().mean(), inputs, create_graph=True)
    total = torch.stack([first.square().sum() for first in firsts]).sum()
    return [y, *firsts, *torch.autograd.grad(total, inputs)]


@pytest.mark.parametrize("shape", [(7, 3), (2, 4, 3), (2, 3, 2, 3), (1, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_results_and_derivatives_are_those_of_torch(shape: tuple[int, ...], bias: bool) -> None:
    for ours, plain in zip(results(linear, shape, bias), results(F.linear, shape, bias), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-5)


WEIGHTS = {
    "transposed": torch.randn(4, 6).t(),
    "a part": torch.randn(6, 8)[:, 2:6],
    "one row": torch.randn(4).expand(6, 4),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_views_are_read_as_they_lie_in_memory(name: str) -> None:
    x, weight = torch.randn(3, 4, 8)[..., ::2].transpose(0, 1), WEIGHTS[name]
    torch.testing.assert_close(linear(x, weight), F.linear(x, weight), rtol=1e-5, atol=1e-5)


def test_a_part_of_a_weight_takes_no_more_time() -> None:
    x, weight = torch.randn(1024, 64), torch.randn(256, 128)
    begin = time.process_time()
    linear(x, weight[:, :64])
    assert time.process_time() - begin < 0.1  # 0.3 s without a copy


@pytest.mark.parametrize("learned", [(False, True, True), (True, False, False), (False, False, True)])
def test_inputs_without_a_gradient_have_none(learned: tuple[bool, ...]) -> None:
    gradients = []
    for function in (linear, F.linear):
        torch.manual_seed(0)
        inputs = [torch.randn(size) for size in ((4, 3), (5, 3), (5,))]
        for value, is_learned in zip(inputs, learned, strict=True):
            value.requires_grad_(is_learned)
        torch.autograd.backward(function(*inputs).sin().sum())
        gradients.append([value.grad for value in inputs])
    for ours, plain in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, plain)


def test_autocast_transforms_and_empty_batches_are_those_of_torch() -> None:
    module = KernelLinear(3, 5)
    x = torch.randn(4, 3)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).dtype == torch.bfloat16
    torch.testing.assert_close(torch.vmap(module)(x), module(x))
    torch.testing.assert_close(torch.func.jvp(module, (x,), (x,))[1], F.linear(x, module.weight))
    assert module(x[:0]).shape == (0, 5)
