"""Concat concatenates features."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.concat import Concat
from tests.blocks.conftest import agree


@pytest.mark.parametrize("shape", [(2, 3), (2,)])
def test_features_are_in_the_order_of_the_arguments(shape: tuple[int, ...]) -> None:
    def slow(*xs: Tensor) -> Tensor:
        rows = [
            [feature for x in xs for feature in x.reshape(-1, x.shape[-1])[i]] for i in range(len(xs[0].flatten(0, -2)))
        ]
        return torch.stack([torch.stack(row) for row in rows]).reshape(*shape, -1)

    agree(Concat(), slow, *(torch.randn(*shape, width, dtype=torch.float64) for width in (1, 4, 2)))
