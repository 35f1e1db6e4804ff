"""Reductions of features by Python's own functions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.blocks.feature_reductions import FeatureReduction, MaxFeatures, MinFeatures, SumFeatures


@pytest.mark.parametrize(("kind", "reduce"), [(SumFeatures, sum), (MaxFeatures, max), (MinFeatures, min)])
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 3)], ids=["seq", "vec"])
def test_features_are_reduced_to_one(
    kind: type[FeatureReduction],
    reduce: Callable[[list[Tensor]], Tensor],
    shape: tuple[int, ...],
    agree: Callable[..., None],
) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([reduce(list(row)) for row in x.reshape(-1, 3)]).reshape(*shape[:-1], 1)

    block = SumFeatures(groups=1, d=3) if kind is SumFeatures else kind(d=3)
    agree(block, slow, torch.randn(shape, dtype=torch.float64))


def test_groups_of_features_have_sums_of_their_own(agree: Callable[..., None]) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack((x[..., 0] + x[..., 1] + x[..., 2], x[..., 3] + x[..., 4] + x[..., 5]), -1)

    agree(SumFeatures(groups=2, d=6), slow, torch.randn(2, 4, 6, dtype=torch.float64))
