"""Halting loops against a program for single samples in plain numbers, and their properties."""

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.runtime.halting import HaltingBlock, Tally
from archlang.blocks.halting import GlobalHalt, TokenHalt
from tests.closeness import same_gradients

Body = Callable[[Tensor, Tensor], Tensor]


token_halt = partial(TokenHalt, threshold=0.9, transition=False, length_cap=True, ponder="code", d=4)
global_halt = partial(GlobalHalt, threshold=0.9, transition=False, causal=False, length_cap=True, ponder="code", d=4)


def drive(block: HaltingBlock, body: Body, h: Tensor, mask: Tensor | None, limit: int) -> list[Tally]:
    """Runs the loop of the protocol and returns its tallies, from the start."""
    tallies = [block.start(h, mask)]
    while len(tallies) <= limit and tallies[-1].live.any():
        tallies.append(block.advance(tallies[-1], body(tallies[-1].state, tallies[-1].mixture), mask))
    return tallies


def slow_halt(block: TokenHalt | GlobalHalt, features: Tensor) -> Tensor:
    hidden = block.hidden.weight @ features + block.hidden.bias
    hidden = hidden * (1 + torch.erf(hidden / math.sqrt(2))) / 2
    return 1 / (1 + torch.exp(-(block.output.weight[0] @ hidden + block.output.bias[0])))


def slow_sample(block: TokenHalt | GlobalHalt, body: Body, h: Tensor, limit: int) -> tuple[Tensor, Tensor, list[int]]:
    """Returns the result and the ponder of one sample without padding, and the steps of each position (or of all)."""
    n = len(h)
    of_sample = isinstance(block, GlobalHalt) and not block.per_position
    groups = [list(range(n))] if of_sample else [[i] for i in range(n)]

    def pool(states: list[Tensor], group: list[int]) -> Tensor:
        if isinstance(block, TokenHalt):
            return states[group[0]]
        seen = states if of_sample else states[: group[0] + 1]
        return sum(seen[1:], seen[0]) / len(seen)

    states, mixture = list(h), list(h)
    rest = [torch.ones(())] * len(groups)
    alphas: list[list[Tensor]] = [[] for _ in groups]
    passed: list[list[list[Tensor]]] = [[[] for _ in group] for group in groups]
    steps, halted = [0] * len(groups), [False] * len(groups)
    costs = [torch.zeros((), dtype=torch.float64)] * len(groups)
    for step in range(1, limit + 1):
        if all(halted):
            break
        new = list(body(torch.stack(states)[None], torch.stack(mixture)[None])[0])
        decided = []
        for group in groups:
            features = pool(states, group)
            if block.transition:
                features = torch.cat((features, pool(new, group)))
            decided.append(slow_halt(block, features))
        before = list(states)
        for g, group in enumerate(groups):
            if halted[g]:
                continue
            alphas[g].append(decided[g] * rest[g])
            rest[g] = rest[g] * (1 - decided[g])
            for place, i in enumerate(group):
                passed[g][place].append(before[i])
            spent = sum(alphas[g], torch.zeros(()))
            if spent >= block.threshold or (block.length_cap and step > n + 1):
                halted[g] = True
                continue
            steps[g] = step
            for place, i in enumerate(group):
                states[i] = new[i]
                earlier = [a * s for a, s in zip(alphas[g], passed[g][place], strict=True)]
                mixture[i] = (1 - spent) * new[i] + sum(earlier, torch.zeros(()))
            if block.ponder == "code":
                charges = [a * (k + 1) for k, a in enumerate(alphas[g])]
                costs[g] = sum(charges, torch.zeros(())) + (1 - spent) * step
            else:
                costs[g] = sum((a * k for k, a in enumerate(alphas[g])), torch.zeros(()))
    return torch.stack(mixture), sum(costs, torch.zeros(())) / len(costs), steps


class Mix(nn.Module):
    """A body whose positions read the mixture of the positions up to them, without padding."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.own, self.other = nn.Linear(d, d).double(), nn.Linear(d, d).double()

    def forward(self, state: Tensor, mixture: Tensor) -> Tensor:
        return torch.tanh(2 * self.own(state) + self.other(mixture).cumsum(1))


RAGGED = torch.arange(5) < torch.tensor([[5], [2], [1], [0]])
BLOCKS: dict[str, Callable[..., TokenHalt | GlobalHalt]] = {
    "token": token_halt,
    "global": global_halt,
    "causal": partial(global_halt, causal=True),
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("transition", [False, True])
@pytest.mark.parametrize("ponder", ["code", "equation"])
@pytest.mark.parametrize("length_cap", [False, True])
@pytest.mark.parametrize("opening", [-3.0, 0.0, 4.0])
def test_a_batch_computes_the_loop_of_each_sample_alone(
    kind: str, transition: bool, ponder: str, length_cap: bool, opening: float
) -> None:
    block = BLOCKS[kind](transition=transition, ponder=ponder, length_cap=length_cap).double()
    block.output.bias.data.fill_(opening)
    block.hidden.weight.data.mul_(4)
    body = Mix(4)
    h = torch.randn(4, 5, 4, dtype=torch.float64, requires_grad=True)
    tally = drive(block, body, h, RAGGED, 8)[-1]
    leaves = [h, *block.parameters(), *body.parameters()]
    probe = torch.randn_like(h)
    fast = (tally.mixture * probe)[RAGGED].sum() + tally.ponder.sum()
    slow = torch.zeros((), dtype=torch.float64)
    assert tally.ponder[3] == 0
    for b, length in enumerate([5, 2, 1]):
        mixture, cost, steps = slow_sample(block, body, h[b, :length], 8)
        torch.testing.assert_close(tally.mixture[b, :length], mixture, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(tally.ponder[b], cost, atol=1e-10, rtol=1e-10)
        assert tally.steps[b].reshape(-1)[: len(steps)].tolist() == steps
        slow = slow + (mixture * probe[b, :length]).sum() + cost
    same_gradients(fast, slow, leaves, tolerance=1e-9)


def test_the_compared_steps_differ() -> None:
    block, body = token_halt().double(), Mix(4)
    block.hidden.weight.data.mul_(4)
    steps = drive(block, body, torch.randn(3, 5, 4, dtype=torch.float64), None, 8)[-1].steps
    assert len(set(steps.flatten().tolist())) > 2


@pytest.mark.parametrize("kind", BLOCKS)
def test_halting_at_once_returns_the_input_without_ponder(kind: str) -> None:
    block = BLOCKS[kind]()
    block.output.bias.data.fill_(20.0)
    h = torch.randn(2, 3, 4)
    tallies = drive(block, lambda state, _: state + 1, h, None, 9)
    assert len(tallies) == 2
    assert tallies[-1].mixture.equal(h)
    assert tallies[-1].ponder.eq(0).all()
    assert not tallies[-1].accepted.any()
