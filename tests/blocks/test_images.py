"""Blocks of images equal loops over pixels."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.images import ConvolveImage, ImagePatches
from tests.closeness import same_gradients

COLUMNS = 4
LENGTHS = [24, 12, 8, 0]  # 6 and fewer rows


def samples(x: Tensor, lengths: list[int]) -> list[dict[tuple[int, int], Tensor]]:
    """The pixels of each sample by row and column."""
    return [
        {(i // COLUMNS, i % COLUMNS): row[i] for i in range(length)} for row, length in zip(x, lengths, strict=True)
    ]


def batch(rows: list[list[Tensor]], width: int) -> Tensor:
    most = max(map(len, rows))
    zeros = torch.zeros(width, dtype=torch.float64)
    return torch.stack([torch.stack([*row, *[zeros] * (most - len(row))]) for row in rows])


@pytest.mark.parametrize("is_padded", [False, True])
@pytest.mark.parametrize(
    ("width", "stride", "groups", "bias"), [(1, 1, 1, True), (3, 1, 2, False), (2, 2, 1, True), (5, 2, 4, True)]
)
def test_a_convolution_sums_over_the_pixels_around(
    width: int, stride: int, groups: int, bias: bool, is_padded: bool
) -> None:
    torch.manual_seed(1)
    block = ConvolveImage(out=8, width=width, columns=COLUMNS, stride=stride, groups=groups, bias=bias, d=4).double()
    x = torch.randn(4, 24, 4, dtype=torch.float64, requires_grad=True)
    lengths = LENGTHS if is_padded else [24] * 4
    mask = torch.arange(24) < torch.tensor(lengths)[:, None] if is_padded else None
    rows = []
    for pixels, length in zip(samples(x, lengths), lengths, strict=True):
        results = []
        for place in range(length // stride**2):
            i, j = divmod(place, COLUMNS // stride)
            y = torch.zeros(8, dtype=torch.float64) if block.bias is None else block.bias
            for a in range(width):
                for c in range(width):
                    before = (width - 1) // 2
                    pixel = pixels.get((stride * i + a - before, stride * j + c - before))
                    if pixel is not None:
                        kernels, parts = block.weight[..., a, c].chunk(groups), pixel.chunk(groups)
                        y = y + torch.cat([kernel @ part for kernel, part in zip(kernels, parts, strict=True)])
            results.append(y)
        rows.append(results)
    result = block(x, mask_n=mask)
    y, own = (result, mask) if stride == 1 else result
    assert own is None or own.sum(1).tolist() == [length // stride**2 for length in lengths]
    y = y if own is None else y.masked_fill(~own[..., None], 0.0)
    same_gradients(y, batch(rows, 8) + 0 * x.sum(), [x, *block.parameters()])


def test_patches_have_the_pixels_of_squares_feature_by_feature() -> None:
    x = torch.randn(4, 24, 3, dtype=torch.float64)
    y, mask = ImagePatches(k=2, columns=COLUMNS, d=3)(x, mask_n=torch.arange(24) < torch.tensor(LENGTHS)[:, None])
    assert mask is not None
    assert mask.sum(1).tolist() == [length // 4 for length in LENGTHS]
    for pixels, row, length in zip(samples(x, LENGTHS), y, LENGTHS, strict=True):
        for place in range(length // 4):
            i, j = divmod(place, 2)
            square = [pixels.get((2 * i + a, 2 * j + c), torch.zeros(3)) for a in range(2) for c in range(2)]
            assert row[place].equal(torch.stack(square, 1).flatten())
