"""Selecting, repeating and arranging features, entry by entry."""

from collections.abc import Callable

import torch
from torch import Tensor

from archlang.blocks.features import Constant, HeadColumns, RepeatFeatures, SliceFeatures, TileFeatures


def test_a_slice_has_the_features_from_its_start(agree: Callable[..., None]) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([x[..., 2 + c] for c in range(3)], -1)

    agree(SliceFeatures(start=2, width=3, d=6), slow, torch.randn(2, 4, 6, dtype=torch.float64))


def test_each_feature_is_repeated_beside_itself(agree: Callable[..., None]) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([x[..., c // 3] for c in range(6)], -1)

    agree(RepeatFeatures(times=3, d=2), slow, torch.randn(2, 4, 2, dtype=torch.float64))


def test_tiles_have_all_features_in_their_order(agree: Callable[..., None]) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([x[..., c % 2] for c in range(6)], -1)

    agree(TileFeatures(times=3, d=2), slow, torch.randn(2, 4, 2, dtype=torch.float64))


def test_row_i_of_columns_has_the_ith_feature_of_each_head(agree: Callable[..., None]) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([torch.stack([x[:, 3 * h + i] for h in range(2)], -1) for i in range(3)], 1)

    agree(HeadColumns(heads=2, d=6), slow, torch.randn(4, 6, dtype=torch.float64))


def test_a_constant_is_the_same_for_every_sample() -> None:
    block = Constant(slots=2, d=3, value=0.1)
    assert block(4).tolist() == torch.full((4, 2, 3), 0.1).tolist()
    assert block.double()(1).tolist() == [[[0.1] * 3] * 2]
    assert not list(block.parameters())
    assert not block.state_dict()
