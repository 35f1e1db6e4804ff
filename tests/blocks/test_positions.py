"""Sinusoids, START and END, and rotary positions against their formulas; scalings against transformers."""

import cmath
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.blocks.positions import (
    AbsolutePositions,
    LearnedPositions,
    RotaryPositions,
    RotaryPositionsAt,
    Rotation,
    StartEnd,
    counted,
    sinusoid,
)
from tests.blocks.conftest import agree, wave
from tests.closeness import same_gradients
from tests.conftest import Compiled


@pytest.mark.parametrize("d", [1, 5, 8])
def test_sinusoids_follow_the_formula_also_before_zero(d: int) -> None:
    table = sinusoid(torch.arange(-20, 21, dtype=torch.float64), d)
    slow = torch.stack([wave(p, d) for p in range(-20, 21)])
    torch.testing.assert_close(table, slow, atol=1e-12, rtol=0)


@pytest.mark.parametrize(
    ("scaling", "scale"), [("none", 1.0), ("token_upscaling", 1.0), ("position_downscaling", 1 / math.sqrt(6))]
)
def test_positions_are_added_scaled(scaling: str, scale: float) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        return torch.stack([row + scale * torch.stack([wave(p, 6) for p in range(4)]) for row in x])

    block = AbsolutePositions(scaling=scaling, dropout=0.0, d=6)
    agree(block, slow, torch.randn(2, 4, 6, dtype=torch.float64), mask_n=None)


def test_positions_of_half_precision_states_are_exact_before_they_are_rounded() -> None:
    x = torch.zeros(1, 600, 8, dtype=torch.bfloat16)
    y = AbsolutePositions(scaling="none", dropout=0.0, d=8)(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y[0, 599].float(), sinusoid(counted(600, torch.zeros(1)), 8)[599], atol=4e-3, rtol=0)


@pytest.mark.parametrize("start", [0, 2, 6])
def test_vectors_are_added_at_as_many_positions_as_there_are(start: int) -> None:
    block, x = LearnedPositions(most=5, init="normal", d=3), torch.randn(2, 4, 3)
    cache = BlockCache((True,), start)
    y = block.extend(cache, x) if start else block(x)
    for index in range(4):
        place = start + index
        assert torch.equal(y[:, index], x[:, index] + block.weight[place] if place < 5 else x[:, index])
    assert 0.01 < LearnedPositions(most=50, init="small", d=20).weight.std() < 0.03


def test_start_comes_first_and_end_right_after_the_last_real_position() -> None:
    block = StartEnd(d=3)
    x = torch.randn(3, 4, 3)
    mask = torch.tensor([[True] * 4, [True, True, False, False], [False] * 4])
    y, real = block(x, mask_n=mask)
    assert real is not None
    assert real.sum(1).tolist() == [6, 4, 2]
    for row, length in enumerate([4, 2, 0]):
        assert y[row, 0].equal(block.start)
        assert y[row, 1 : length + 1].equal(x[row, :length])
        assert y[row, length + 1].equal(block.end)
        assert real[row, : length + 2].all()


def test_without_a_mask_end_comes_last() -> None:
    block = StartEnd(d=3)
    x = torch.randn(2, 4, 3)
    y, real = block(x)
    assert real is None
    assert y.equal(torch.cat((block.start.expand(2, 1, 3), x, block.end.expand(2, 1, 3)), dim=1))


def test_start_and_end_start_normal() -> None:
    block = StartEnd(d=10_000)
    assert block.start.std().item() == pytest.approx(1, abs=0.03)
    assert block.end.std().item() == pytest.approx(1, abs=0.03)


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


def test_all_layers_share_the_angles_of_a_call(compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    module = compiled(
        "model m(x: seq[n, d]) -> seq[n, d] { h = x\n"
        "stack 2 { h <- h + rotary_positions[2](h) + rotary_positions[1, rotated = 4](h) } return h }",
        d=8,
    )
    lengths: list[int] = []
    turns = Rotation._turns

    def noted(self: Rotation, places: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        lengths.append(len(places))
        return turns(self, places, dtype)

    monkeypatch.setattr(Rotation, "_turns", noted)
    for length in (5, 3):
        module(torch.zeros(1, length, 8))
    assert lengths == [5, 3]
