"""The network with a stack against loops over samples, steps and slots."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from archlang.blocks.stack_rnn import StackRnn
from tests.blocks.conftest import agree


def network(slots: int) -> StackRnn:
    return StackRnn(hidden=6, slots=slots, width=3, d=5).double()


def slow_network(block: StackRnn) -> Callable[..., Tensor]:
    def slow(x: Tensor, mask_n: Tensor | None) -> Tensor:
        samples = []
        for row in x:
            h = torch.zeros(6, dtype=torch.float64)
            stack = [torch.zeros(3, dtype=torch.float64)] * block.slots
            states = []
            for x_t in row:
                seen = h + block.top.weight @ stack[0] + block.top.bias
                h = torch.tanh(
                    block.cell.weight_ih @ x_t + block.cell.bias_ih + block.cell.weight_hh @ seen + block.cell.bias_hh
                )
                powers = torch.exp(block.action.weight @ h + block.action.bias)
                push, pop = powers / powers.sum()
                element = 1 / (1 + torch.exp(-(block.element.weight @ h + block.element.bias)))
                above = [element, *stack[:-1]]
                below = [*stack[1:], torch.zeros(3, dtype=torch.float64)]
                stack = [push * pushed + pop * popped for pushed, popped in zip(above, below, strict=True)]
                states.append(h)
            samples.append(torch.stack(states))
        return torch.stack(samples)

    return slow


@pytest.mark.parametrize("slots", [1, 3])
def test_states_and_gradients_are_those_of_the_equations(slots: int) -> None:
    # Longer than the stack, so that elements are lost at its end.
    block = network(slots)
    agree(block, slow_network(block), torch.randn(2, 7, 5, dtype=torch.float64), mask_n=None)
