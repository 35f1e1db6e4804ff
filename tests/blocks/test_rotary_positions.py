"""Rotary positions against a rotation of complex numbers, and their promise."""

import cmath

import torch
from torch import Tensor

from archlang.blocks.rotary_positions import RotaryPositions
from tests.closeness import same_gradients


def by_hand(x: Tensor, heads: int, rotated: int, start: int, first: float, base: float) -> Tensor:
    _, length, width = x.shape
    size = width // heads
    rows = []
    for i in range(length):
        columns = [x[:, i, c] for c in range(width)]
        for head in range(heads):
            for c in range(rotated // 2):
                one, two = head * size + c, head * size + c + rotated // 2
                turn = cmath.exp(1j * (start + i) * first * base ** (-2 * c / rotated))
                pair = torch.complex(columns[one], columns[two]) * turn
                columns[one], columns[two] = pair.real, pair.imag
        rows.append(torch.stack(columns, -1))
    return torch.stack(rows, 1)


def test_the_block_turns_pairs_of_features() -> None:
    x = torch.randn(2, 5, 16, dtype=torch.float64, requires_grad=True)
    for heads, rotated, start, first, base in ((1, 0, 0, 1.0, 1e4), (2, 4, 3, 3.14, 100.0), (2, 8, 0, 1.0, 1e4)):
        block = RotaryPositions(heads=heads, rotated=rotated, start=start, first=first, base=base, d=16)
        expected = by_hand(x, heads, rotated or 16 // heads, start, first, base)
        same_gradients(block(x), expected, [x])


def test_a_product_depends_on_the_distance() -> None:
    block = RotaryPositions(heads=1, rotated=0, start=0, first=1.0, base=1e4, d=8)
    q, k = torch.randn(2, 1, 1, 8, dtype=torch.float64).expand(2, 1, 6, 8)
    products = block(q) @ block(k).transpose(1, 2)
    for offset in range(-5, 6):
        diagonal = products.diagonal(offset, 1, 2)
        torch.testing.assert_close(diagonal, diagonal[:, :1].expand_as(diagonal), atol=1e-10, rtol=0)
