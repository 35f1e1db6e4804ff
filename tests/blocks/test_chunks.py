"""The cuts of sequences; no position is lost."""

import pytest
import torch

from archlang.blocks.chunks import Chunks


def sizes(total: int, size: int = 0, count: int = 0, *, balanced: bool = False) -> list[int]:
    parts = Chunks(size=size, balanced=balanced, count=count, d=2)(torch.zeros(1, total, 2))
    return [part.shape[1] for part, _ in parts]


@pytest.mark.parametrize(
    ("total", "chunks", "expected"),
    [
        (9, (4, 0), [4, 4, 1]), (8, (4, 0), [4, 4]), (3, (4, 0), [3]),
        (512, (0, 5), [103] * 4 + [100]), (1024, (0, 5), [205] * 4 + [204]), (6, (0, 5), [2] * 3),
        (13, (0, 5), [3] * 4 + [1]), (3, (0, 5), [1] * 3),
    ],
)  # fmt: skip
def test_chunks_have_a_size_or_at_most_a_number(total: int, chunks: tuple[int, int], expected: list[int]) -> None:
    assert sizes(total, *chunks) == expected


@pytest.mark.parametrize(("total", "size"), [(9, 4), (512, 100), (1024, 100), (8, 4), (13, 4)])
def test_balanced_chunks_are_those_of_torch_chunk(total: int, size: int) -> None:
    expected = [len(part) for part in torch.zeros(total).chunk(-(-total // size))]
    assert sizes(total, size=size, balanced=True) == expected


@pytest.mark.parametrize(("size", "balanced", "count"), [(4, False, 0), (4, True, 0), (0, False, 5)])
def test_chunks_in_order_are_the_sequence(size: int, balanced: bool, count: int) -> None:
    block = Chunks(size=size, balanced=balanced, count=count, d=3)
    for total in range(12):
        x = torch.randn(2, total, 3)
        mask = torch.rand(2, total) < 0.5
        parts = block(x, mask_n=mask)
        assert torch.cat([part for part, _ in parts], dim=1).equal(x)
        assert torch.cat([real for _, real in parts], dim=1).equal(mask)
        # A chunk without positions belongs to no sample.
        assert all(real is None for _, real in block(x)) == (total > 0)
