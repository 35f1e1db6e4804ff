"""The cuts of sequences; no position is lost."""

import pytest
import torch

from archlang.blocks.chunks import Chunks


def sizes(total: int, *, size: int = 0, balanced: bool = False, count: int = 0) -> list[int]:
    parts = Chunks(size=size, balanced=balanced, count=count, d=2)(torch.zeros(1, total, 2))
    return [part.shape[1] for part, _ in parts]


def test_fixed_chunks_have_the_given_size() -> None:
    assert sizes(9, size=4) == [4, 4, 1]
    assert sizes(8, size=4) == [4, 4]
    assert sizes(3, size=4) == [3]


@pytest.mark.parametrize(
    ("total", "size", "expected"),
    [
        (9, 4, [3, 3, 3]),
        (512, 100, [86] * 5 + [82]),
        (1024, 100, [94] * 10 + [84]),
        (8, 4, [4, 4]),
        (13, 4, [4, 4, 4, 1]),
    ],
)
def test_balanced_chunks_are_those_of_torch_chunk(total: int, size: int, expected: list[int]) -> None:
    assert sizes(total, size=size, balanced=True) == expected
    count = -(-total // size)
    assert expected == [len(part) for part in torch.zeros(total).chunk(count)]


@pytest.mark.parametrize(
    ("total", "expected"),
    [(512, [103] * 4 + [100]), (1024, [205] * 4 + [204]), (6, [2, 2, 2]), (13, [3] * 4 + [1]), (3, [1] * 3)],
)
def test_count_limits_the_number_of_chunks(total: int, expected: list[int]) -> None:
    assert sizes(total, count=5) == expected


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


def test_fixed_chunks_of_a_sample_do_not_depend_on_longer_samples_of_the_batch() -> None:
    block = Chunks(size=4, balanced=False, count=0, d=3)
    x = torch.randn(1, 6, 3)
    padded = torch.cat((x, torch.zeros(1, 7, 3)), dim=1)
    real = torch.arange(13)[None] < 6
    alone = [part for part, _ in block(x)]
    beside = [part[mask] for part, mask in block(padded, mask_n=real)]
    assert [len(part) for part in beside] == [4, 2, 0, 0]
    assert all(actual.equal(expected[0]) for actual, expected in zip(beside, alone, strict=False))
