"""Rotary position encoding against complex numbers."""

from collections.abc import Callable

import torch
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.blocks.rotary import Rotary


def slow(x: Tensor) -> Tensor:
    heads = []
    for part in x.chunk(2, -1):
        pairs = torch.view_as_complex(part.reshape(*part.shape[:-1], 2, 2).contiguous())
        angles = torch.tensor(
            [[i * 100.0 ** (-2 * c / 4) for c in range(2)] for i in range(x.shape[1])], dtype=torch.float64
        )
        turns = torch.polar(torch.ones(x.shape[1], 2, dtype=torch.float64), angles)
        heads.append(torch.view_as_real(pairs * turns).flatten(-2))
    return torch.cat(heads, -1)


def test_each_pair_of_a_head_is_rotated_by_its_position(agree: Callable[..., None]) -> None:
    agree(Rotary(heads=2, base=100.0, d=8), slow, torch.randn(3, 5, 8, dtype=torch.float64))


def test_decoding_counts_the_positions_before() -> None:
    block, x = Rotary(heads=2, base=100.0, d=8), torch.randn(3, 5, 8)
    later = block.extend(BlockCache(grows=(True,), start=3), x[:, 3:])
    torch.testing.assert_close(later, block(x)[:, 3:])
