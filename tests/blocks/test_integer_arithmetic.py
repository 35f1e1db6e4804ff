"""Arithmetic on distributions of integers against sums over all pairs of integers."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.blocks.integer_arithmetic import IntegerArithmetic
from tests.blocks.conftest import agree

FUNCTIONS: dict[str, Callable[[int, int], int]] = {
    "increment": lambda i, j: i + 1,
    "decrement": lambda i, j: i - 1,
    "add": lambda i, j: i + j,
    "subtract": lambda i, j: i - j,
    "less": lambda i, j: i < j,
    "less_or_equal": lambda i, j: i <= j,
    "equal": lambda i, j: i == j,
    "minimum": min,
    "maximum": max,
}


@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("operation", FUNCTIONS)
def test_the_distribution_of_a_function_is_a_sum_over_pairs(operation: str, m: int) -> None:
    function = FUNCTIONS[operation]

    def slow(a: Tensor, b: Tensor) -> Tensor:
        if operation in ("increment", "decrement"):
            b = 0 * b + 1 / m  # ignored
        y = [torch.zeros(a.shape[:-1], dtype=a.dtype) for _ in range(m)]
        for i in range(m):
            for j in range(m):
                result = int(function(i, j)) % m
                y[result] = y[result] + a[..., i] * b[..., j]
        return torch.stack(y, -1)

    a, b = torch.rand(2, 3, m, dtype=torch.float64), torch.rand(2, 3, m, dtype=torch.float64)
    agree(IntegerArithmetic(operation=operation, m=m), slow, a, b)


@pytest.mark.parametrize("m", [1, 2, 5])
def test_constants_are_certain(m: int) -> None:
    a = torch.rand(2, 3, m)
    for number, operation in enumerate(("zero", "one", "two")):
        result = IntegerArithmetic(operation=operation, m=m)(a, a)
        assert result.equal(torch.eye(m)[number % m].expand(2, 3, m))
