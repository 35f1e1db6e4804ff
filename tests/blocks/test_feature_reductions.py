"""Reductions of features by Python's own functions."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.feature_reductions import (
    GroupReduction,
    LengthFeatures,
    MaxFeatures,
    MinFeatures,
    ProductFeatures,
    SumFeatures,
)
from tests.blocks.conftest import agree


def total(row: list[Tensor]) -> Tensor:
    return torch.stack(row).sum()


def product(row: list[Tensor]) -> Tensor:
    result = torch.ones((), dtype=torch.float64)
    for number in row:
        result = result * number
    return result


def length(row: list[Tensor]) -> Tensor:
    return torch.stack([number * number for number in row]).sum().sqrt()


REDUCTIONS: list[tuple[type[nn.Module], Callable[[list[Tensor]], Tensor]]] = [
    (SumFeatures, total),
    (MaxFeatures, max),
    (MinFeatures, min),
    (ProductFeatures, product),
    (LengthFeatures, length),
]


@pytest.mark.parametrize(("kind", "reduce"), REDUCTIONS)
@pytest.mark.parametrize("shape", [(2, 4, 3), (2, 3)], ids=["seq", "vec"])
def test_features_are_reduced_to_one(
    kind: type[nn.Module], reduce: Callable[[list[Tensor]], Tensor], shape: tuple[int, ...]
) -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack([reduce(list(row)) for row in x.reshape(-1, 3)]).reshape(*shape[:-1], 1)

    block = kind(groups=1, d=3) if issubclass(kind, GroupReduction) else kind(d=3)
    agree(block, slow, torch.randn(shape, dtype=torch.float64))


def test_groups_of_features_have_sums_of_their_own() -> None:
    def slow(x: Tensor) -> Tensor:
        return torch.stack((x[..., 0] + x[..., 1] + x[..., 2], x[..., 3] + x[..., 4] + x[..., 5]), -1)

    agree(SumFeatures(groups=2, d=6), slow, torch.randn(2, 4, 6, dtype=torch.float64))


def test_groups_of_features_have_products_and_lengths_of_their_own() -> None:
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    agree(
        ProductFeatures(groups=3, d=6),
        lambda x: torch.stack([x[..., 2 * j] * x[..., 2 * j + 1] for j in range(3)], -1),
        x,
    )
    agree(
        LengthFeatures(groups=2, d=6),
        lambda x: torch.stack([torch.sqrt((x[..., 3 * j : 3 * j + 3] ** 2).sum(-1)) for j in range(2)], -1),
        x,
    )


def test_products_and_lengths_of_zeros_have_finite_gradients() -> None:
    x = torch.tensor([[0.0, 0.0], [0.0, 3.0]], dtype=torch.float64, requires_grad=True)
    (products,) = torch.autograd.grad(ProductFeatures(groups=1, d=2)(x).sum(), x)
    (lengths,) = torch.autograd.grad(LengthFeatures(groups=1, d=2)(x).sum(), x)
    assert products.tolist() == [[0.0, 0.0], [3.0, 0.0]]
    assert lengths.tolist() == [[0.0, 0.0], [0.0, 1.0]]
