"""The seed of the tests of blocks, and the comparison with a slow form."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.closeness import same_gradients


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


def agree(
    block: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-10,
    **masks: Tensor | None,
) -> None:  # fmt: skip
    """Compares a block in float64, or a function, with a slow form of it: results, and gradients of inputs and
    weights."""
    leaves = {f"input {i}": value.requires_grad_() for i, value in enumerate(inputs) if value.is_floating_point()}
    if isinstance(block, nn.Module):
        leaves |= dict(block.double().named_parameters())
    results = block(*inputs, **masks), slow(*inputs, **masks)
    same_gradients(*results, leaves.values(), tolerance=tolerance, names=list(leaves))


def by_column(slow: Callable[[Tensor], Tensor]) -> Callable[..., Tensor]:
    """Applies a function to every vector of a sequence, or of a batch of vectors."""

    def of_all(x: Tensor, mask_n: Tensor | None = None) -> Tensor:
        columns = torch.stack([slow(column) for column in x.reshape(-1, x.shape[-1])])
        return columns.reshape(*x.shape[:-1], -1)

    return of_all
