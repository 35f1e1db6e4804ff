"""The network with a stack against loops, and the nondeterministic stack against all runs of its automaton."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from archlang.blocks.recurrent import NondeterministicStack, StackRnn
from tests.blocks.conftest import agree
from tests.closeness import same_gradients


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


Place = tuple[int, Tensor]
"""a symbol and a vector"""
Run = tuple[int, tuple[Place, ...], Tensor]
"""a state, a stack with its top last, and the log weight"""


def successors(run: Run, logits: Tensor, vector: Tensor, states: int, symbols: int) -> Iterator[Run]:
    state, stack, weight = run
    symbol, own = stack[-1]
    row = logits.view(states * symbols, -1)[state * symbols + symbol]
    tops = states * symbols
    for top in range(tops):
        target, written = divmod(top, symbols)
        yield target, (*stack, (written, vector)), weight + row[top]
        yield target, (*stack[:-1], (written, own)), weight + row[tops + top]
    if len(stack) > 1:
        for target in range(states):
            yield target, stack[:-1], weight + row[2 * tops + target]


def by_enumeration(block: NondeterministicStack, x: Tensor) -> Tensor:
    """Returns the readings of one sample, [n q s m]."""
    states, symbols = block.states, block.symbols
    runs: list[Run] = [(0, ((0, block.bottom.sigmoid()),), x.new_zeros(()))]
    readings = []
    for position in x:
        logits, vector = block.actions(position), block.push(position).exp()
        runs = [after for run in runs for after in successors(run, logits, vector, states, symbols)]
        total = sum(weight.exp() for _, _, weight in runs)
        reading = []
        for top in range(states * symbols):
            state, symbol = divmod(top, symbols)
            there = [(weight, stack[-1][1]) for own, stack, weight in runs if (own, stack[-1][0]) == (state, symbol)]
            weighed = [weight.exp() * vector for weight, vector in there]
            reading.append(torch.stack(weighed).sum(0) / total if weighed else torch.zeros_like(vector))
        readings.append(torch.cat(reading))
    return torch.stack(readings)


def test_the_block_sums_over_all_runs() -> None:
    torch.manual_seed(0)
    for states, symbols, length in ((1, 2, 4), (2, 1, 4), (2, 2, 3)):
        block = NondeterministicStack(states=states, symbols=symbols, width=2, d=3).double()
        x = torch.randn(2, length, 3, dtype=torch.float64, requires_grad=True)
        result, expected = block(x), torch.stack([by_enumeration(block, sample) for sample in x])
        same_gradients(result, expected, [x, *block.parameters()])


def test_long_sequences_with_large_weights_are_finite() -> None:
    block = NondeterministicStack(states=2, symbols=2, width=2, d=3)
    with torch.no_grad():
        block.actions.weight.mul_(50)
        assert block(torch.randn(1, 60, 3)).isfinite().all()
