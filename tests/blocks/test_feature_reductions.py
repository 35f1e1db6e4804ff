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

    agree(kind(d=3), slow, torch.randn(shape, dtype=torch.float64))
