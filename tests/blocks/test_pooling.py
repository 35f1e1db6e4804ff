"""One vector of a sequence, taken by loops over the real positions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.pooling import First, Last, Max, Mean, Min, Sum
from tests.blocks.conftest import agree

ON_REAL: dict[type[nn.Module], Callable[[list[Tensor]], Tensor]] = {
    First: lambda columns: columns[0],
    Last: lambda columns: columns[-1],
    Sum: lambda columns: sum(columns[1:], columns[0]),
    Mean: lambda columns: sum(columns[1:], columns[0]) / len(columns),
    Max: lambda columns: torch.stack([max(column[c] for column in columns) for c in range(3)]),
    Min: lambda columns: torch.stack([min(column[c] for column in columns) for c in range(3)]),
}
RAGGED = torch.tensor([[True] * 4, [True, True, False, False], [True, False, False, False], [False] * 4])


@pytest.mark.parametrize("kind", ON_REAL)
@pytest.mark.parametrize("mask", [None, RAGGED], ids=["no mask", "ragged"])
def test_only_real_positions_count(kind: type[nn.Module], mask: Tensor | None) -> None:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        rows = []
        for b in range(len(x)):
            columns = [x[b, i] for i in range(x.shape[1]) if mask_n is None or mask_n[b, i]]
            rows.append(ON_REAL[kind](columns) if columns else torch.zeros_like(x[b, 0]))
        return torch.stack(rows)

    agree(kind(d=3), slow, torch.randn(4, 4, 3, dtype=torch.float64), mask_n=mask)
