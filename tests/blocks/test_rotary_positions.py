"""Rotary positions against a rotation of complex numbers, scalings against transformers, and their promise."""

import cmath
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.blocks.rotary_positions import RotaryPositions, RotaryPositionsAt
from tests.closeness import same_gradients

STATICS: dict[str, Any] = {
    "heads": 1, "rotated": 0, "start": 0, "first": 1.0, "base": 1e4, "interleaved": False, "scaling": "none",
    "factor": 1.0, "trained": 0, "slow": 1.0, "fast": 32.0, "rounded": True,
}  # fmt: skip


def by_hand(x: Tensor, places: Tensor, turn: Callable[[int], complex], s: dict[str, Any]) -> Tensor:
    """Rotates at places [b n]; `turn(c)` is the logarithm of the factor of pair c at place 1."""
    heads, size = s["heads"], x.shape[2] // s["heads"]
    rotated = s["rotated"] or size
    columns = list(x.unbind(2))
    for head in range(heads):
        for c in range(rotated // 2):
            one, two = (2 * c, 2 * c + 1) if s["interleaved"] else (c, c + rotated // 2)
            one, two = head * size + one, head * size + two
            angle = (s["start"] + places) * turn(c).imag
            pair = torch.complex(columns[one], columns[two]) * torch.exp(1j * angle + turn(c).real)
            columns[one], columns[two] = pair.real, pair.imag
    return torch.stack(columns, -1)


@pytest.mark.parametrize(
    "changed",
    [
        {"base": 1e4},
        {"heads": 2, "rotated": 4, "start": 3, "first": 3.14, "base": 100.0},
        {"heads": 2, "rotated": 8},
        {"heads": 2, "rotated": 6, "interleaved": True, "start": 1},
        {"scaling": "linear", "factor": 3.0},
    ],
)
def test_the_blocks_turn_pairs_of_features(changed: dict[str, Any]) -> None:
    x = torch.randn(2, 5, 16, dtype=torch.float64, requires_grad=True)
    s = STATICS | changed
    rotated = s["rotated"] or 16 // s["heads"]

    def turn(c: int) -> complex:
        return complex(0, s["first"] * s["base"] ** (-2 * c / rotated) / s["factor"])

    places = torch.arange(5.0, dtype=torch.float64).expand(2, 5)
    same_gradients(RotaryPositions(**s, d=16)(x), by_hand(x, places, turn, s), [x])
    placed = (3 * torch.rand(2, 5, dtype=torch.float64) - 1).requires_grad_()
    at = RotaryPositionsAt(**s, d=16)(x, placed[..., None])
    same_gradients(at, by_hand(x, placed, turn, s), [x, placed])


# `inv_freq` and `attention_scaling` of transformers 5.24 for base 500 and 16 features.
SCALED: list[tuple[dict[str, Any], list[float], float]] = [
    (
        {"scaling": "llama3", "factor": 8.0, "trained": 64, "fast": 4.0},
        [1.0, 0.459863275, 0.097616628, 0.012156156, 0.00559017, 0.002570714, 0.001182177, 0.00054364],
        1.0,
    ),
    (
        {"scaling": "yarn", "factor": 4.0, "trained": 64, "fast": 16.0},
        [1.0, 0.344897449, 0.10573712, 0.024312312, 0.01118034, 0.005141428, 0.002364354, 0.00108728],
        1.138629436111989,
    ),
    (
        {"scaling": "yarn", "factor": 32.0, "trained": 4096, "rounded": False},
        [1.0, 0.459863275, 0.21147424, 0.097249247, 0.043556917, 0.015564589, 0.005103998, 0.001402774],
        1.3465735902799727,
    ),
    (
        {"scaling": "yarn", "factor": 8.0, "trained": 6},
        [1.0, 0.057482909, 0.02643428, 0.012156156, 0.00559017, 0.002570714, 0.001182177, 0.00054364],
        1.2079441541679836,
    ),
]


@pytest.mark.parametrize(("changed", "frequencies", "gain"), SCALED)
def test_scaled_angles_are_those_of_transformers(
    changed: dict[str, Any], frequencies: list[float], gain: float
) -> None:
    s = STATICS | {"base": 500.0} | changed
    x = torch.randn(2, 5, 16, dtype=torch.float64)
    places = torch.arange(5.0, dtype=torch.float64).expand(2, 5)
    expected = by_hand(x, places, lambda c: cmath.log(gain) + 1j * frequencies[c], s)
    torch.testing.assert_close(RotaryPositions(**s, d=16)(x), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scaling", ["none", "yarn"])
def test_a_product_depends_on_the_distance(scaling: str) -> None:
    block = RotaryPositions(**STATICS | {"scaling": scaling, "factor": 4.0, "trained": 20}, d=8)
    q, k = torch.randn(2, 1, 1, 8, dtype=torch.float64).expand(2, 1, 6, 8)
    products = block(q) @ block(k).transpose(1, 2)
    for offset in range(-5, 6):
        diagonal = products.diagonal(offset, 1, 2)
        torch.testing.assert_close(diagonal, diagonal[:, :1].expand_as(diagonal), atol=1e-10, rtol=0)
