"""Addresses: binary numbers that count up, from a base that training draws."""

import pytest
import torch
from torch import Tensor

from archlang.blocks.addresses import Addresses


def number(bits: Tensor) -> int:
    """Returns the number with these bits, the least significant first."""
    return int(sum(int(bit) * 2**place for place, bit in enumerate(bits.tolist())))


def test_addresses_count_up_from_zero_in_evaluation() -> None:
    a = Addresses(bits=4, base="training", d=3).eval()(torch.zeros(2, 11, 3))
    assert [number(address) for address in a[1]] == list(range(11))
    assert a[0, 6].tolist() == [0, 1, 1, 0]


def test_training_draws_a_base_for_each_sample_and_wraps() -> None:
    a = Addresses(bits=4, base="training", d=3)(torch.zeros(400, 11, 3))
    numbers = [[number(address) for address in row] for row in a]
    assert {row[0] for row in numbers} == set(range(16))
    assert all(row[i + 1] == (row[i] + 1) % 16 for row in numbers for i in range(10))


@pytest.mark.parametrize(("base", "training", "moves"), [("always", False, True), ("zero", True, False)])
def test_the_base_is_drawn_always_or_never(base: str, training: bool, moves: bool) -> None:
    block = Addresses(bits=6, base=base, d=3).train(training)
    first = {number(row[0]) for row in block(torch.zeros(50, 2, 3))}
    assert (len(first) > 1) is moves
    assert moves or first == {0}


def test_the_contents_of_a_memory_do_not_change_its_addresses() -> None:
    block = Addresses(bits=6, base="zero", d=3)
    assert block(torch.randn(2, 5, 3)).equal(block(torch.randn(2, 5, 3)))
