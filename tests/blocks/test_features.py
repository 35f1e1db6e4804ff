"""Selecting, repeating and arranging features, entry by entry."""

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.features import Constant, HeadColumns, RepeatFeatures, SliceFeatures, TileFeatures
from tests.blocks.conftest import agree


@pytest.mark.parametrize(
    ("block", "width", "sources"),
    [
        (SliceFeatures(start=2, width=3, d=6), 6, [2, 3, 4]),
        (RepeatFeatures(times=3, d=2), 2, [0, 0, 0, 1, 1, 1]),
        (TileFeatures(times=3, d=2), 2, [0, 1, 0, 1, 0, 1]),
    ],
)
def test_features_are_those_of_a_slice_of_repetitions_or_of_tiles(
    block: nn.Module, width: int, sources: list[int]
) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([x[..., source] for source in sources], -1)

    agree(block, slow, torch.randn(2, 4, width, dtype=torch.float64))


def test_row_i_of_columns_has_the_ith_feature_of_each_head() -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([torch.stack([x[:, 3 * h + i] for h in range(2)], -1) for i in range(3)], 1)

    agree(HeadColumns(heads=2, d=6), slow, torch.randn(4, 6, dtype=torch.float64))


def test_a_constant_is_the_same_for_every_sample() -> None:
    block = Constant(slots=2, d=3, value=0.1)
    assert block(4).tolist() == torch.full((4, 2, 3), 0.1).tolist()
    assert block.double()(1).tolist() == [[[0.1] * 3] * 2]
    assert not list(block.parameters())
    assert not block.state_dict()
