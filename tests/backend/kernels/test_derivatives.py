"""Gradients that can be differentiated again, of a plain form."""

import torch
from torch import Tensor

from archlang.backend.kernels.derivatives import plain_gradients


def test_a_tensor_that_is_two_inputs_has_a_gradient_for_each() -> None:
    x = torch.randn(3, requires_grad=True)
    gradients = plain_gradients(torch.mul, (x, x), (True, True), (torch.ones(3),))
    for gradient in gradients:
        assert gradient is not None
        assert torch.equal(gradient, x)


def test_only_required_gradients_are_computed() -> None:
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    gradient, missing = plain_gradients(torch.mul, (x, y), (True, False), (torch.ones(3),))
    assert gradient is not None
    assert torch.equal(gradient, y)
    assert missing is None


def test_an_input_that_a_result_does_not_depend_on_has_the_gradient_zero() -> None:
    x, y = (torch.randn(3, requires_grad=True) for _ in range(2))

    def first(x: Tensor, y: Tensor) -> Tensor:
        return 2 * x

    _, zero = plain_gradients(first, (x, y), (True, True), (torch.ones(3),))
    assert zero is not None
    assert torch.equal(zero, torch.zeros(3))
