"""The seed of the tests of blocks, the comparison with a slow form, and parts of slow forms."""

import math
from collections.abc import Callable, Sequence

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


def by_vector(slow: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Applies a function to every vector of sequences, or of batches of vectors."""

    def of_all(*xs: Tensor, mask_n: Tensor | None = None) -> Tensor:
        vectors = zip(*(x.reshape(-1, x.shape[-1]) for x in xs), strict=True)
        return torch.stack([slow(*own) for own in vectors]).reshape(*xs[0].shape[:-1], -1)

    return of_all


def attended(logits: Sequence[Tensor], values: Sequence[Tensor], width: int, sink: Tensor | None = None) -> Tensor:
    """Returns Σ_j exp(logit_j) v_j / Σ_j exp(logit_j), with a sink in the denominator; zeros without values."""
    powers = [torch.exp(logit) for logit in logits]
    total = sum(powers, torch.zeros(()) if sink is None else sink.exp())
    weighed = (power / total * value for power, value in zip(powers, values, strict=True))
    return sum(weighed, torch.zeros(width, dtype=torch.float64))


def wave(place: float, d: int) -> Tensor:
    """Returns the sinusoid of a place: sin and cos of place / 10000^(2c/d)."""
    angles = [place / 10000 ** (2 * (c // 2) / d) for c in range(d)]
    return torch.tensor([math.cos(a) if c % 2 else math.sin(a) for c, a in enumerate(angles)], dtype=torch.float64)


def gru_step(cell: nn.Module, x: Tensor, h: Tensor, ending: str = "") -> Tensor:
    """Returns the next state of a GRU."""
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    of_input, of_state, input_bias, state_bias = (cell.get_parameter(f"{name}{ending}") for name in names)
    r, z, n = (of_input @ x + input_bias).chunk(3)
    hr, hz, hn = (of_state @ h + state_bias).chunk(3)
    z = (z + hz).sigmoid()
    return (1 - z) * torch.tanh(n + (r + hr).sigmoid() * hn) + z * h
