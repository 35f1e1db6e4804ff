"""Tables of vectors: embedded tokens, the scores of tokens, unit vectors, zeros and learned slots."""

import copy
from functools import partial
from math import sqrt
from random import Random

import pytest
import torch
from torch import Tensor, nn

from archlang.blocks.embed import Embed, IsToken, Learned, OneHot, Unembed, Zeros
from archlang.blocks.token_arithmetic import HashTokens, ModuloTokens, PairTokens, ShiftTokens, TokenValues
from tests.blocks.conftest import agree, by_vector

embed = partial(Embed, d=6, init="normal", scaling="none", dropout=0.0, frozen=-1, frozen_start="drawn", vocab=9)


@pytest.mark.parametrize("scaling", ["none", "token_upscaling", "position_downscaling"])
def test_a_token_is_its_scaled_row(scaling: str) -> None:
    block = embed(scaling=scaling)

    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        scale = sqrt(6) if scaling == "token_upscaling" else 1.0
        return torch.stack([torch.stack([scale * block.weight[token] for token in row]) for row in x])

    agree(block, slow, torch.tensor([[3, 0, 8], [3, 3, 1]]), mask_n=None)


@pytest.mark.parametrize(
    ("init", "deviation"), [("normal", 1.0), ("small", 0.02), ("kaiming", sqrt(2 / 200)), ("xavier", sqrt(2 / 1200))]
)
def test_init_selects_the_distribution_of_the_table(init: str, deviation: float) -> None:
    weight = embed(d=200, vocab=1000, init=init).weight
    assert weight.std().item() == pytest.approx(deviation, rel=0.01)
    assert weight.mean().item() == pytest.approx(0, abs=deviation / 100)
    if init == "xavier":  # uniform
        assert weight.abs().max().item() == pytest.approx(sqrt(6 / 1200), rel=1e-3)


def test_a_frozen_row_gets_no_gradient() -> None:
    block = embed(frozen=3)
    block(torch.tensor([[3, 1]])).sum().backward()
    assert block.weight.grad is not None
    assert block.weight.grad[3].eq(0).all()
    assert block.weight.grad[1].eq(1).all()


def test_a_frozen_row_may_start_at_zero() -> None:
    assert embed(frozen=3, frozen_start="zero").weight.eq(0).all(-1).tolist() == [row == 3 for row in range(9)]


def test_dropout_acts_in_training_only() -> None:
    block = embed(dropout=0.5)
    x = torch.zeros(1, 400, dtype=torch.int64)
    assert block(x).eq(0).float().mean().item() == pytest.approx(0.5, abs=0.05)
    assert block.eval()(x).ne(0).all()


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("scaling", ["none", "token_upscaling"])
def test_a_score_is_the_product_with_the_unscaled_row(bias: bool, scaling: str) -> None:
    rows = embed(d=4, scaling=scaling).double()
    block = Unembed(table=rows, bias=bias, d=4)
    if block.bias is not None:
        nn.init.normal_(block.bias)

    def slow(column: Tensor) -> Tensor:
        products = [sum((a * b for a, b in zip(column, row, strict=True)), torch.zeros(())) for row in rows.weight]
        return torch.stack(products) + (block.bias if block.bias is not None else 0)

    agree(block, by_vector(slow), torch.randn(2, 3, 4, dtype=torch.float64), mask_n=None)


def test_the_bias_starts_at_zero_and_is_its_only_parameter() -> None:
    block = Unembed(table=embed(d=4).double(), bias=True, d=4)
    assert block.bias is not None
    assert block.bias.eq(0).all()
    assert list(block.state_dict()) == ["bias"]
    assert list(Unembed(table=embed(d=4).double(), bias=False, d=4).state_dict()) == []


def test_the_table_is_trained_from_both_sides_and_copied_together() -> None:
    model = nn.ModuleDict()
    rows = embed(d=4).double()
    model["table"], model["scores"] = rows, Unembed(table=rows, bias=False, d=4)
    model["scores"](rows(torch.tensor([[0, 1]]))).sum().backward()
    assert rows.weight.grad is not None
    assert rows.weight.grad.ne(0).all()
    twin = copy.deepcopy(model)
    nn.init.zeros_(twin["table"].get_parameter("weight"))
    assert twin["scores"](torch.ones(1, 1, 4, dtype=torch.float64)).eq(0).all()


def test_a_token_is_one_at_its_own_number_only() -> None:
    x = torch.tensor([[2, 0], [1, 1]])
    expected = torch.tensor([[[0.0, 0, 1], [1, 0, 0]], [[0, 1, 0], [0, 1, 0]]])
    assert OneHot(vocab=3)(x).equal(expected)
    assert OneHot(vocab=3).double()(x).equal(expected.double())
    assert IsToken(token=2, vocab=3).double()(x).equal(expected[..., 2:].double())


def test_arithmetic_of_tokens_is_that_of_integers_and_stays_below_the_vocabulary_of_its_type() -> None:
    x = torch.tensor([[3, 0, 2, 1], [1, 1, 3, 2]])
    assert ShiftTokens(by=2, vocab=4)(x).tolist() == [[4, 4, 3, 0], [4, 4, 1, 1]]
    assert ShiftTokens(by=0, vocab=4)(x).equal(x)
    assert PairTokens(v=4, w=4)(x, x.flip(1)).tolist() == [[13, 2, 8, 7], [6, 7, 13, 9]]
    assert ModuloTokens(m=2, vocab=4)(x).equal(x % 2)
    assert TokenValues(vocab=4).double()(x).equal(x[..., None].double())


def test_a_hash_is_that_of_exact_integers_and_spreads_tokens_evenly() -> None:
    prime, draw = 2**31 - 1, Random(3)
    a, b, c = draw.randrange(1, prime), draw.randrange(1, prime), draw.randrange(prime)
    x = torch.tensor([[0, 1, prime - 1, prime, 2**53 - 1, 2**62]])
    expected = [(a * (token // prime) + b * (token % prime) + c) % prime % 1_009 for token in x[0].tolist()]
    assert HashTokens(buckets=1_009, seed=3)(x).tolist() == [expected]
    counts = HashTokens(buckets=10, seed=3)(torch.arange(10_000)[None]).flatten().bincount(minlength=10)
    assert counts.min() > 900
    assert counts.max() < 1_100


def test_every_token_becomes_zeros_in_the_dtype_of_the_model() -> None:
    y = Zeros(d=4, vocab=9).to(torch.bfloat16)(torch.tensor([[3, 1, 2], [8, 0, 0]]))
    assert y.equal(torch.zeros(2, 3, 4, dtype=torch.bfloat16))


def test_every_sample_gets_the_same_slots() -> None:
    block = Learned(slots=3, d=4, init="normal")
    y = block(5)
    assert y.shape == (5, 3, 4)
    assert all(slots.equal(block.weight) for slots in y)
    y.sum().backward()
    assert block.weight.grad is not None
    assert block.weight.grad.eq(5).all()


def test_slots_start_at_zero_or_normal() -> None:
    assert Learned(slots=3, d=4, init="zeros").weight.eq(0).all()
    assert Learned(slots=100, d=100, init="normal").weight.std().item() == pytest.approx(1, abs=0.03)
    assert Learned(slots=3, d=4, init="zeros").double()(0).shape == torch.Size([0, 3, 4])
