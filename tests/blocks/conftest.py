"""What the tests of blocks share: the comparison with a slow form."""

from __future__ import annotations

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
    """Holds a block in float64 against a slow form of it: results, and gradients of inputs and weights."""
    block = block.double()
    names = [name for name, _ in block.named_parameters()]
    leaves = [one.requires_grad_() for one in inputs if one.is_floating_point()] + list(block.parameters())
    labels = [f"input {i}" for i, one in enumerate(inputs) if one.is_floating_point()] + names
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
    for label, one, other in zip(labels, fast, expected, strict=True):
        said = partial("gradient of {}: {}".format, label)
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, msg=said)


@pytest.fixture
def agree() -> Callable[..., None]:
    return _agree
