"""The selection of scores by distance, and its derivatives."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.relative_attention import by_distance

SIZES = [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3), (4, 4)]
EARLIER = [(n, m) for n, m in SIZES if m <= n]


def scores(n: int, r: int) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 3, n, r, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_every_pair_gets_the_score_of_its_distance(n: int, m: int) -> None:
    distances = torch.arange(1 - n, m + 1).expand(1, 1, n, n + m)
    assert by_distance(distances.double(), m)[0, 0].tolist() == [[j - i for j in range(m)] for i in range(n)]


@pytest.mark.parametrize(("n", "m"), EARLIER)
def test_scores_that_end_at_the_distance_0_suffice_for_earlier_keys(n: int, m: int) -> None:
    distances = torch.arange(1 - n, 1).expand(1, 1, n, n)
    selected = by_distance(distances.double(), m)[0, 0]
    assert selected.shape == (n, m)
    assert all(selected[i, j] == j - i for i in range(n) for j in range(min(i + 1, m)))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_without_queries_or_keys_there_are_no_scores(n: int, m: int) -> None:
    of_distances = scores(n, n + m)
    selected = by_distance(of_distances, m)
    assert selected.shape == (2, 3, n, m)
    (gradient,) = torch.autograd.grad(selected.sum(), of_distances, create_graph=True)
    assert not gradient.any()
