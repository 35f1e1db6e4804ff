"""Norm against mean and variance taken by hand."""

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.norm import Norm
from archlang.plan.check import check_text
from tests.blocks.conftest import agree, by_column


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 4)])
def test_each_column_is_normalised_separately(shape: tuple[int, ...]) -> None:
    block = Norm(epsilon=1e-3, d=4)
    nn.init.normal_(block.weight)
    nn.init.normal_(block.bias)

    def slow(column: Tensor) -> Tensor:
        mean = sum(column.unbind(), torch.zeros(())) / 4
        variance = sum(((feature - mean) ** 2 for feature in column.unbind()), torch.zeros(())) / 4
        return (column - mean) / (variance + 1e-3) ** 0.5 * block.weight + block.bias

    agree(block, by_column(slow), torch.randn(shape, dtype=torch.float64))


def test_it_starts_as_the_plain_normalisation() -> None:
    block = Norm(epsilon=1e-5, d=64)
    y = block(3 + 2 * torch.randn(5, 64))
    torch.testing.assert_close(y.mean(-1), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(y.var(-1, unbiased=False), torch.ones(5), atol=1e-3, rtol=0)


def test_a_width_is_no_epsilon() -> None:
    text = "model m[d = 8](x: tokens[n]) -> logits[n, vocab] { return embed[d](x) |> norm[d] |> linear[vocab] }"
    recipe = "recipe r { task flipflop model m train adamw[steps = 1] }"
    assert [mistake.code for mistake in check_text(f"{text}\n{recipe}\n", "m.arch")] == ["E0304"]
