"""Halting loops against programs for single samples in plain numbers, and their properties."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.halting import HaltingBlock, HaltingState
from archlang.blocks.halting import Act, BernoulliHalt, BernoulliTokenHalt, GlobalHalt, TokenHalt, Trials
from archlang.plan.check import check_text
from tests.closeness import close, same_gradients
from tests.shipped_models import load_page

Body = Callable[[Tensor, Tensor], Tensor]


token_halt = partial(TokenHalt, threshold=0.9, transition=False, length_cap=True, ponder="code", d=4)
global_halt = partial(GlobalHalt, threshold=0.9, transition=False, causal=False, length_cap=True, ponder="code", d=4)


def drive(block: HaltingBlock, body: Body, h: Tensor, mask: Tensor | None, limit: int) -> list[HaltingState]:
    """Runs the loop of the protocol and returns its halting states, from the start."""
    halting_states = [block.start(h, mask)]
    while len(halting_states) <= limit and halting_states[-1].live.any():
        halting_states.append(
            block.advance(halting_states[-1], body(halting_states[-1].state, halting_states[-1].mixture), mask)
        )
    return halting_states


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
    halting = drive(block, body, h, RAGGED, 8)[-1]
    leaves = [h, *block.parameters(), *body.parameters()]
    probe = torch.randn_like(h)
    fast = (halting.mixture * probe)[RAGGED].sum() + halting.ponder.sum()
    slow = torch.zeros((), dtype=torch.float64)
    assert halting.ponder[3] == 0
    for b, length in enumerate([5, 2, 1]):
        mixture, cost, steps = slow_sample(block, body, h[b, :length], 8)
        torch.testing.assert_close(halting.mixture[b, :length], mixture, atol=1e-10, rtol=1e-10)
        torch.testing.assert_close(halting.ponder[b], cost, atol=1e-10, rtol=1e-10)
        assert halting.steps[b].reshape(-1)[: len(steps)].tolist() == steps
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
    halting_states = drive(block, lambda state, _: state + 1, h, None, 9)
    assert len(halting_states) == 2
    assert halting_states[-1].mixture.equal(h)
    assert halting_states[-1].ponder.eq(0).all()
    assert not halting_states[-1].accepted.any()


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


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
@pytest.mark.parametrize("ponder", ["code", "equation"])
@pytest.mark.parametrize("opening", [-6.0, -1.5, 0.0, 5.0])
def test_each_column_halts_by_its_own_sum(variant: str, ponder: str, opening: float) -> None:
    block = act(variant=variant, ponder=ponder).double()
    block.halt.bias.data.fill_(opening)
    block.halt.weight.data.mul_(2)
    states = torch.randn(7, 3, 5, 4, dtype=torch.float64, requires_grad=True)
    count = iter(range(1, 7))
    halting = drive(block, lambda *_: states[next(count)], states[0], RAGGED[[0, 1, 3]], 6)[-1]
    probe = torch.randn(3, 5, 4, dtype=torch.float64)
    fast = (halting.mixture * probe).sum() + halting.ponder.sum()
    slow = torch.zeros((), dtype=torch.float64)
    for b, length in enumerate([5, 2, 0]):
        remainders = []
        for i in range(length):
            out, remainder, steps = slow_column(block, list(states[:, b, i]), variant, 6)
            torch.testing.assert_close(halting.mixture[b, i], out, atol=1e-10, rtol=1e-10)
            assert halting.steps[b, i] == steps
            remainders.append(remainder)
            slow = slow + (out * probe[b, i]).sum()
        assert halting.mixture[b, length:].eq(0).all()
        denominator = 5 if ponder == "code" else max(1, length)
        cost = sum(remainders, torch.zeros((), dtype=torch.float64)) / denominator
        torch.testing.assert_close(halting.ponder[b], cost, atol=1e-10, rtol=1e-10)
        slow = slow + cost
    leaves = [states, *block.parameters()]
    same_gradients(fast, slow, leaves, tolerance=1e-9)


def test_halted_columns_are_still_transformed() -> None:
    block = act().double()
    block.halt.weight.data.copy_(torch.tensor([[2.0, 0, 0, 0]]))
    halting_states = drive(block, lambda state, _: state + 1, torch.randn(3, 5, 4, dtype=torch.float64), None, 6)
    steps = halting_states[-1].steps
    assert len(set(steps.flatten().tolist())) > 1
    close(halting_states[-1].state, halting_states[0].state + len(halting_states) - 1)
    # Other states of the loop do not change for halted columns.
    for before, after in pairwise(halting_states):
        assert after.accepted.equal(before.live)


@pytest.mark.parametrize("variant", ["graves", "dehghani"])
def test_half_precision_states_are_summed_in_single_precision(variant: str) -> None:
    block = act(variant=variant).to(torch.bfloat16)
    halting = drive(block, lambda state, _: torch.tanh(state), torch.randn(2, 3, 4, dtype=torch.bfloat16), None, 4)[-1]
    assert halting.mixture.dtype == torch.bfloat16
    assert halting.ponder.dtype == torch.float32


def halting_states(evaluation: str, chances: Tensor, training: bool = False) -> list[Trials]:
    """The halting states of a loop whose state is a row of `chances`, [steps b], after each step."""
    block = BernoulliHalt(evaluation=evaluation).train(training)
    halting = block.start(torch.zeros(chances.shape[1], 1, dtype=chances.dtype), None)
    results = []
    for row in chances:
        halting = block.advance(halting, row[:, None], None)
        results.append(halting)
    return results


def test_the_halting_state_equals_sums_over_the_steps() -> None:
    chances = torch.rand(5, 3, dtype=torch.float64).requires_grad_()
    results = halting_states("never", chances)
    actual, expected = list[Tensor](), list[Tensor]()
    for sample in range(3):
        λ = chances[:, sample]
        left = [torch.ones((), dtype=λ.dtype)]
        for chance in λ:
            left.append(left[-1] * (1 - chance))
        p = [λ[t] * left[t] for t in range(5)]
        for t, halting in enumerate(results):
            weights = [*p[:t], left[t]]
            mixture = torch.stack([weight * chance for weight, chance in zip(weights, λ, strict=False)]).sum()
            ponder = torch.stack([step * weight for step, weight in enumerate(weights, start=1)]).sum()
            actual += [
                halting.mixture[sample, 0],
                halting.ponder[sample],
                halting.remaining[sample],
                halting.spent[sample],
            ]
            expected += [mixture, ponder, left[t], torch.stack(p[: t + 1]).sum()]
    same_gradients(torch.stack(actual), torch.stack(expected), [chances])


def test_training_takes_all_steps_and_the_median_those_with_half_of_the_probability() -> None:
    chances = torch.tensor([[0.6, 0.1, 0.3], [0.0, 0.5, 0.3], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]])
    assert halting_states("median", chances)[-1].steps.tolist() == [1, 2, 2]
    assert halting_states("median", chances, training=True)[-1].steps.tolist() == [4, 4, 4]
    assert halting_states("never", chances)[-1].steps.tolist() == [4, 4, 4]


def test_a_quantile_belongs_to_halting_by_it() -> None:
    text = """block b(h: seq[n, d]) -> seq[n, d] {
        chance = sigmoid(linear[1](h))
        y = repeat 4 halting chance by bernoulli_token_halt[STATICS] { chance <- sigmoid(linear[1](h)) emit h }
        return y
    }"""
    codes = {
        statics: [mistake.code for mistake in check_text(text.replace("STATICS", statics))]
        for statics in ("quantile, 0.8", "drawn", "drawn, 0.8", "never, 0.8")
    }
    assert codes == {"quantile, 0.8": [], "drawn": [], "drawn, 0.8": ["E0304"], "never, 0.8": ["E0304"]}


@pytest.mark.parametrize("quantile", [0.5, 0.8])
def test_positions_halt_as_samples_do_and_count_without_padding(quantile: float) -> None:
    chances, mask = torch.rand(6, 2, 3, dtype=torch.float64), torch.tensor([[True] * 3, [True, False, False]])
    block = BernoulliTokenHalt(evaluation="quantile", quantile=quantile).eval()
    sample = BernoulliHalt(evaluation="median").eval()
    sample.quantile = quantile
    halting, alone = block.start(chances[0, ..., None], mask), sample.start(chances[0].reshape(6, 1), None)
    for row in chances:
        halting = block.advance(halting, row[..., None], mask)
        alone = sample.advance(alone, row.reshape(6, 1), None)
    real = mask.flatten()
    for name in ("steps", "remaining", "unhalted", "mixture", "gathered"):
        close(getattr(halting, name).flatten()[real], getattr(alone, name).flatten()[real])
    counted = alone.ponder.reshape(2, 3)
    close(halting.ponder, torch.stack([counted[0].mean(), counted[1, 0]]))
    assert not halting.steps[1, 1:].any()


def test_drawn_steps_follow_the_distribution() -> None:
    torch.manual_seed(0)
    chances = torch.tensor([0.2, 0.5, 0.0, 0.3])[:, None].expand(4, 20_000)
    steps = halting_states("drawn", chances)[-1].steps
    shares = torch.bincount(steps, minlength=5)[1:] / len(steps)
    torch.testing.assert_close(shares, torch.tensor([0.2, 0.4, 0.0, 0.4]), atol=0.015, rtol=0)


# PonderNet


def pondernet(**statics: object) -> Architecture:
    sizes = {"vocab": 2, "classes": 2, "slots": 5, "width": 4, "steps": 6, **statics}
    return load_page("pondernet", "pondernet", **sizes)


@pytest.mark.parametrize("divergence", ["equation", "code"])
def test_the_divergence_of_pondernet_is_zero_for_the_distribution_of_its_prior(divergence: str) -> None:
    module = pondernet(steps=400, prior=0.2, divergence=divergence).train()
    with torch.no_grad():
        module.pondering.linear.weight.zero_()
        module.pondering.linear.bias.fill_(math.log(0.2 / 0.8))
    module(torch.tensor([[0, 1, 1]]))
    torch.testing.assert_close(module.losses["halting"], torch.zeros(()), atol=1e-5, rtol=0)


@pytest.mark.parametrize("divergence", ["equation", "code"])
def test_pondernet_stays_finite_if_it_halts_for_sure(divergence: str) -> None:
    module = pondernet(divergence=divergence).train()
    with torch.no_grad():
        module.pondering.linear.bias.fill_(80)
    with module.keeping_steps() as steps:
        module(torch.tensor([[0, 1, 1]]))
    objective = module.losses["halting"] + torch.stack(steps.values).sum()
    gradients = torch.autograd.grad(objective, list(module.parameters()))
    assert all(bool(gradient.isfinite().all()) for gradient in gradients)


def test_pondernet_draws_its_steps_in_evaluation_only() -> None:
    x = torch.zeros(64, 3, dtype=torch.int64)
    module = pondernet(steps=9).train()
    module(x)
    assert module.mean_depth == 9
    module.eval()(x)
    assert module.sample_depth is not None
    assert len({*module.sample_depth.tolist()}) > 2
