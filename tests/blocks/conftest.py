"""Fixtures of the tests of blocks: a seed, and the comparison with a slow form."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


def _agree(
    block: nn.Module, slow: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-10, **masks: Tensor | None
) -> None:
    """Compares a block in float64 with a slow form of it: results, and gradients of inputs and weights."""
    block = block.double()
    names = [name for name, _ in block.named_parameters()]
    leaves = [value.requires_grad_() for value in inputs if value.is_floating_point()] + list(block.parameters())
    labels = [f"input {i}" for i, value in enumerate(inputs) if value.is_floating_point()] + names
    results = [block(*inputs, **masks), slow(*inputs, **masks)]
    torch.testing.assert_close(
        results[0], results[1], rtol=tolerance, atol=tolerance, msg=lambda text: f"result: {text}"
    )
    if not leaves:
        return
    probe = torch.randn_like(results[1])
    fast, expected = (
        torch.autograd.grad((result * probe).sum(), leaves, allow_unused=True, materialize_grads=True)
        for result in results
    )
    for label, gradient, expected_gradient in zip(labels, fast, expected, strict=True):
        message = partial("gradient of {}: {}".format, label)
        torch.testing.assert_close(gradient, expected_gradient, rtol=tolerance, atol=tolerance, msg=message)


@pytest.fixture
def agree() -> Callable[..., None]:
    return _agree
