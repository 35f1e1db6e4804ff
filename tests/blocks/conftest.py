"""Fixtures of the tests of blocks: a seed, and the comparison with a slow form."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.closeness import same_gradients


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


def _agree(
    block: nn.Module, slow: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-10, **masks: Tensor | None
) -> None:
    """Compares a block in float64 with a slow form of it: results, and gradients of inputs and weights."""
    block = block.double()
    leaves = {f"input {i}": value.requires_grad_() for i, value in enumerate(inputs) if value.is_floating_point()}
    leaves |= dict(block.named_parameters())
    results = block(*inputs, **masks), slow(*inputs, **masks)
    same_gradients(*results, leaves.values(), tolerance=tolerance, names=list(leaves))


@pytest.fixture
def agree() -> Callable[..., None]:
    return _agree
