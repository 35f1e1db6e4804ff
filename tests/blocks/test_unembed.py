"""Tied scores: products with the rows of the table, which is saved and trained once."""

import copy

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.embed import Embed
from archlang.blocks.unembed import Unembed
from tests.blocks.conftest import agree, by_column


def table(scaling: str = "none") -> Embed:
    return Embed(d=4, init="normal", scaling=scaling, dropout=0.0, frozen=-1, frozen_start="drawn", vocab=7).double()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scaling", ["none", "token_upscaling"])
def test_a_score_is_the_product_with_the_unscaled_row(bias: bool, scaling: str) -> None:
    rows = table(scaling)
    block = Unembed(table=rows, bias=bias, d=4)
    if block.bias is not None:
        nn.init.normal_(block.bias)

    def slow(column: Tensor) -> Tensor:
        products = [sum((a * b for a, b in zip(column, row, strict=True)), torch.zeros(())) for row in rows.weight]
        return torch.stack(products) + (block.bias if block.bias is not None else 0)

    agree(block, by_column(slow), torch.randn(2, 3, 4, dtype=torch.float64), mask_n=None)


def test_the_bias_starts_at_zero_and_is_its_only_parameter() -> None:
    block = Unembed(table=table(), bias=True, d=4)
    assert block.bias is not None
    assert block.bias.eq(0).all()
    assert list(block.state_dict()) == ["bias"]
    assert list(Unembed(table=table(), bias=False, d=4).state_dict()) == []


def test_the_table_is_trained_from_both_sides_and_copied_together() -> None:
    model = nn.ModuleDict()
    rows = table()
    model["table"], model["scores"] = rows, Unembed(table=rows, bias=False, d=4)
    model["scores"](rows(torch.tensor([[0, 1]]))).sum().backward()
    assert rows.weight.grad is not None
    assert rows.weight.grad.ne(0).all()
    twin = copy.deepcopy(model)
    nn.init.zeros_(twin["table"].get_parameter("weight"))
    assert twin["scores"](torch.ones(1, 1, 4, dtype=torch.float64)).eq(0).all()
