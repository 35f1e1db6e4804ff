"""Adaptive computation time against a program for one column, and its properties."""

from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from archlang.blocks.act import Act
from tests.blocks.test_halting import drive
from tests.closeness import close, same_gradients

act = partial(Act, variant="graves", epsilon=0.01, ponder="code", d=4)


def slow_column(block: Act, states: list[Tensor], variant: str, limit: int) -> tuple[Tensor, Tensor, int]:
    """Returns the result, the remainder and the steps of a column from its states at all steps."""
    spent, out = torch.zeros(()), torch.zeros_like(states[0])
    for step in range(1, limit + 1):
        p = 1 / (1 + torch.exp(-(block.halt.weight[0] @ states[step - 1] + block.halt.bias[0])))
        halts = bool(spent + p > block.threshold) or (variant == "graves" and step == limit)
        weight = 1 - spent if halts else p
        out = out + weight * states[step] if variant == "graves" else out * (1 - weight) + weight * states[step]
        if halts:
            return out, weight, step
        spent = spent + p
    return out, torch.zeros((), dtype=torch.float64), limit


RAGGED = torch.arange(5) < torch.tensor([[5], [2], [0]])


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
@pytest.mark.parametrize("ponder", ["code", "equation"])
@pytest.mark.parametrize("opening", [-6.0, -1.5, 0.0, 5.0])
def test_each_column_halts_by_its_own_sum(variant: str, ponder: str, opening: float) -> None:
    block = act(variant=variant, ponder=ponder).double()
    block.halt.bias.data.fill_(opening)
    block.halt.weight.data.mul_(2)
    states = torch.randn(7, 3, 5, 4, dtype=torch.float64, requires_grad=True)
    count = iter(range(1, 7))
    tally = drive(block, lambda *_: states[next(count)], states[0], RAGGED, 6)[-1]
    probe = torch.randn(3, 5, 4, dtype=torch.float64)
    fast = (tally.mixture * probe).sum() + tally.ponder.sum()
    slow = torch.zeros((), dtype=torch.float64)
    for b, length in enumerate([5, 2, 0]):
        remainders = []
        for i in range(length):
            out, remainder, steps = slow_column(block, list(states[:, b, i]), variant, 6)
            torch.testing.assert_close(tally.mixture[b, i], out, atol=1e-10, rtol=1e-10)
            assert tally.steps[b, i] == steps
            remainders.append(remainder)
            slow = slow + (out * probe[b, i]).sum()
        assert tally.mixture[b, length:].eq(0).all()
        denominator = 5 if ponder == "code" else max(1, length)
        cost = sum(remainders, torch.zeros((), dtype=torch.float64)) / denominator
        torch.testing.assert_close(tally.ponder[b], cost, atol=1e-10, rtol=1e-10)
        slow = slow + cost
    leaves = [states, *block.parameters()]
    same_gradients(fast, slow, leaves, tolerance=1e-9)


def test_halted_columns_are_still_transformed() -> None:
    block = act().double()
    block.halt.weight.data.copy_(torch.tensor([[2.0, 0, 0, 0]]))
    tallies = drive(block, lambda state, _: state + 1, torch.randn(3, 5, 4, dtype=torch.float64), None, 6)
    steps = tallies[-1].steps
    assert len(set(steps.flatten().tolist())) > 1
    close(tallies[-1].state, tallies[0].state + len(tallies) - 1)
    # Other states of the loop do not change for halted columns.
    for before, after in pairwise(tallies):
        assert after.accepted.equal(before.live)


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
def test_half_precision_states_are_summed_in_single_precision(variant: str) -> None:
    block = act(variant=variant).to(torch.bfloat16)
    tally = drive(block, lambda state, _: torch.tanh(state), torch.randn(2, 3, 4, dtype=torch.bfloat16), None, 4)[-1]
    assert tally.mixture.dtype == torch.bfloat16
    assert tally.ponder.dtype == torch.float32
