"""Every activation against its formula in plain Python."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch

from archlang.blocks import activations

FORMULAS: list[tuple[Callable[..., activations.Elementwise], Callable[[float], float]]] = [
    (activations.Relu, lambda x: max(x, 0.0)),
    (partial(activations.Gelu, approximation="none"), lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    (
        partial(activations.Gelu, approximation="tanh"),
        lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
    ),
    (activations.Silu, lambda x: x / (1 + math.exp(-x))),
    (activations.Tanh, lambda x: (math.exp(x) - math.exp(-x)) / (math.exp(x) + math.exp(-x))),
    (activations.Sigmoid, lambda x: 1 / (1 + math.exp(-x))),
    (activations.Softplus, lambda x: math.log(1 + math.exp(x))),
    (activations.Exp, math.exp),
    (activations.Abs, abs),
]


@pytest.mark.parametrize(("kind", "formula"), FORMULAS)
def test_an_activation_is_its_formula(
    kind: Callable[..., activations.Elementwise], formula: Callable[[float], float]
) -> None:
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    y = kind(d=4)(x)
    values = [formula(number) for number in x.flatten().tolist()]
    torch.testing.assert_close(y, torch.tensor(values, dtype=torch.float64).reshape(2, 3, 4), atol=1e-10, rtol=1e-10)


def test_log_is_its_formula_and_is_finite_below_its_floor() -> None:
    x = torch.tensor([-1.0, 0.0, 1e-3, 1.0, math.e], dtype=torch.float64, requires_grad=True)
    y = activations.Log(floor=1e-2, d=5)(x)
    expected = torch.tensor([math.log(1e-2)] * 3 + [0.0, 1.0], dtype=torch.float64)
    torch.testing.assert_close(y, expected, atol=1e-10, rtol=1e-10)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    slopes = torch.tensor([0.0, 0.0, 0.0, 1.0, 1 / math.e], dtype=torch.float64)
    torch.testing.assert_close(gradient, slopes, atol=1e-10, rtol=1e-10)


def test_clamp_is_its_formula_and_has_no_gradient_outside() -> None:
    x = torch.tensor([-3.0, -1.0, 0.5, 2.0, 7.0], dtype=torch.float64, requires_grad=True)
    y = activations.Clamp(low=-2.0, high=3.0, d=5)(x)
    assert y.tolist() == [min(max(number, -2.0), 3.0) for number in x.tolist()]
    (gradient,) = torch.autograd.grad(y.sum(), x)
    assert gradient.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
