"""Elementwise functions of many numbers against torch's: results, derivatives, and the memory that they overwrite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels import elementwise
from archlang.backend.kernels.elementwise import (
    Reuse,
    added,
    exp,
    keeping_arguments,
    kept_where,
    scaled,
    sigmoid,
    softplus,
    tanh,
)
from archlang.backend.kernels.masked_softmax import causal_softmax
from tests.closeness import close, same_gradients

Function = Callable[[Tensor], Tensor]


def _some_rows(x: Tensor) -> Tensor:
    return (torch.arange(x[..., 0].numel()) % 3 > 0).view(x.shape[:-1])[..., None]


FUNCTIONS: list[tuple[Function, Function]] = [
    (exp, torch.exp),
    (tanh, torch.tanh),
    (lambda x: kept_where(x, _some_rows(x)), lambda x: x.masked_fill(~_some_rows(x), 0)),
]
EXTREMES = [-torch.inf, -1e30, -1000.0, -104.0, -90.0, -1e-6, 0.0, 1e-6, 20.0, 1000.0, torch.inf, torch.nan]


@pytest.fixture(autouse=True)
def _of_few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "_LEAST_FOR_EXP", 1)
    monkeypatch.setattr(elementwise, "_LEAST_FOR_TANH", 1)
    monkeypatch.setattr(elementwise, "LEAST_FOR_BITS", 1)


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
    close(*jacobians)


OVERWRITING: dict[str, tuple[Callable[[Tensor, Reuse], Tensor], Function]] = {
    "exp": (exp, torch.exp),
    "tanh": (tanh, torch.tanh),
    "sigmoid": (sigmoid, torch.sigmoid),
    "softplus": (softplus, F.softplus),
    "scaled": (lambda x, reuse: scaled(x, 3.0, reuse), lambda x: 3 * x),
    "added": (lambda x, reuse: added(x, torch.full_like(x, 2.0), reuse), lambda x: x + 2),
    "softmax": (
        lambda x, reuse: causal_softmax(x, 0, reuse),
        lambda x: x.masked_fill(torch.ones(x.shape[-2:]).triu(1) > 0, -torch.inf).softmax(-1),
    ),
}


@pytest.mark.parametrize("name", OVERWRITING)
@pytest.mark.parametrize("reuse", [(True, True), (True, False), (False, True)])
def test_overwritten_memory_changes_no_result_or_gradient(name: str, reuse: Reuse) -> None:
    fast, plain = OVERWRITING[name]
    x = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
    same_gradients(fast(2 * x, reuse) * 1, plain(2 * x), [x], tolerance=1e-12)
    with torch.no_grad():
        close(fast(2 * x, reuse), plain(2 * x))


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "scaled", "added", "softmax"])
@pytest.mark.parametrize("context", ["", "observed", "autocast", "transform", "no gradients"])
def test_an_argument_is_overwritten_in_plain_calls_only(name: str, context: str) -> None:
    x = 1 * torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=context != "no gradients")
    before = x.clone()

    def call(own: Tensor) -> Tensor:
        return OVERWRITING[name][0](own, (True, True))

    contexts: dict[str, AbstractContextManager[object]] = {
        "observed": keeping_arguments(),
        "autocast": torch.autocast("cpu"),
    }
    with contexts.get(context, nullcontext()):
        result = torch.func.vmap(call)(x) if context == "transform" else call(x)
    close(result, OVERWRITING[name][1](before))
    assert torch.equal(x, result if not context else before)


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "softplus", "scaled", "softmax"])
def test_a_gradient_is_overwritten_unless_it_is_differentiated(name: str) -> None:
    x = torch.randn(2, 5, 5, dtype=torch.float64, requires_grad=True)
    y = OVERWRITING[name][0](x, (False, True))
    assert y.grad_fn is not None
    for create_graph in (True, False):
        gradient = torch.ones_like(y)
        (result,) = torch.autograd.grad(y, x, gradient, create_graph=create_graph, retain_graph=True)
        assert torch.equal(gradient, torch.ones_like(y)) is create_graph
        if not create_graph:
            assert result.data_ptr() == gradient.data_ptr()
