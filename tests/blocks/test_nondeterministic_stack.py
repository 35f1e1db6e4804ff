"""The nondeterministic stack against an enumeration of all runs of its automaton."""

from collections.abc import Iterator

import torch
from torch import Tensor

from archlang.blocks.nondeterministic_stack import NondeterministicStack
from tests.closeness import same_gradients

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
