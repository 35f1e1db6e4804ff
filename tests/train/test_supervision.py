"""Claims about `supervise`: the loss scores the steps of the loop whose emission the model returns."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend import halting_loops
from archlang.backend.architecture import Architecture
from archlang.backend.runtime.halting import HaltingState
from archlang.backend.runtime.loops import StepResults
from archlang.blocks.halting import Account
from archlang.train.data import DeviceSplit
from archlang.train.loss import forward, mean_loss, training_loss
from tests.closeness import close
from tests.conftest import Compiled
from tests.train.settings_of_a_run import settings_with
from tests.train.test_score import CPU, POINTERS, POSITIONS

MODEL = """
model m[d = 4, steps = 3](x: tokens[n]) -> logits[n, vocab] {
    let head = linear[vocab]
    h = embed[d](x)
    y = LOOP {
        h <- tanh(h + linear[d](h))
        emit head(h)
    }
    return y
}
"""


@pytest.mark.parametrize(("loop", "first"), [("repeat steps", 1), ("stack steps", 1), ("repeat steps truncated 2", 2)])
@pytest.mark.parametrize("supervise", ["last", "every"])
def test_the_loss_scores_the_steps_that_have_gradients(
    compiled: Compiled, loop: str, first: int, supervise: str
) -> None:
    batch = DeviceSplit(POSITIONS, CPU).batch(np.array([0, 1]))
    text = MODEL.replace("LOOP", loop)
    module = compiled(text, vocab=3).double()
    settings = settings_with(supervise=supervise)
    results: list[Tensor] = []
    for steps in range(first, 4):
        shorter = compiled(text.replace("truncated 2", ""), vocab=3, steps=steps).double()
        shorter.load_state_dict(module.state_dict(), strict=False)
        results.append(shorter(*batch.fields.values(), lengths=next(iter(batch.lengths.values()))))
    expected = {
        "last": lambda: mean_loss(results[-1], batch),
        "every": lambda: torch.stack([mean_loss(result, batch) for result in results]).mean(),
    }
    loss = training_loss(module, batch, module, settings)
    close(loss, expected[supervise]())
    loop_of_results = module.loop_of_results()
    assert loop_of_results is not None
    assert loop_of_results.step_results is None


# Halting loops


HALTING = """
model m[d = 3, emits_state = false](x: tokens[n]) -> logits[n, d] {
    let head = linear[d]
    h = embed[d](x)
    y = repeat 6 halting h by BLOCK {
        h <- tanh(h + 2 * linear[d](h))
        emit h when emits_state else head(h)
    }
    return y
}
"""
BLOCKS = (
    "act[graves, epsilon = 0.3]", "act[dehghani]", "token_halt[0.8]", "token_halt[0.5, length_cap = false]",
    "global_halt[0.8, transition = true]", "global_halt[0.7, causal = true]",
)  # fmt: skip
LENGTHS = torch.tensor([5, 1, 3])
TOKENS = torch.tensor([[0, 1, 2, 0, 1], [2, 0, 0, 0, 0], [1, 1, 2, 0, 0]])
REAL = torch.arange(5) < LENGTHS[:, None]


def halting(compiled: Compiled, block: str, **statics: object) -> Architecture:
    torch.manual_seed(1)
    module = compiled(HALTING.replace("BLOCK", block), vocab=3, **statics).double()
    for name, parameter in module.named_parameters():
        # Probabilities of halting for several steps.
        torch.nn.init.normal_(parameter, std=0.3 if "halt" in name or "act" in name else 1.0)
    return module


def watched(module: Architecture) -> tuple[list[HaltingState], StepResults]:
    """The halting states of the halting loop of a module in a call, and what it has emitted after each step."""
    halting_states: list[HaltingState] = []
    (loop,) = halting_loops(module)
    loop.watch = halting_states.append
    with module.keeping_steps() as results:
        module(TOKENS, lengths=LENGTHS)
    loop.watch = None
    return halting_states, results


@pytest.mark.parametrize("block", BLOCKS)
def test_the_probabilities_of_halting_sum_to_one_and_are_zero_after_the_last_step(
    compiled: Compiled, block: str
) -> None:
    module = halting(compiled, block)
    halting_states, results = watched(module)
    weights = torch.stack(results.weights)
    assert len(weights) == len(results.values) == len(halting_states) > 1
    close(weights.sum(0), torch.ones_like(weights[0]))
    assert (weights >= 0).all()
    accepted = torch.stack([halting.accepted for halting in halting_states])
    assert (weights[1:][~accepted[1:]] == 0).all()


@pytest.mark.parametrize("block", BLOCKS)
def test_a_halting_loop_emits_the_result_of_the_last_accepted_step(compiled: Compiled, block: str) -> None:
    module = halting(compiled, block, emits_state=True)
    halting_states, results = watched(module)
    emitted = module(TOKENS, lengths=LENGTHS)
    close(emitted, results.values[-1])
    if block.startswith("act"):
        return  # the state moves on after the last accepted step
    accepted = halting_states[0].accepted
    took = accepted if accepted.dim() > 1 else accepted[:, None] & REAL
    close(emitted[took & REAL], halting_states[-1].state[took & REAL])


@pytest.mark.parametrize("block", [block for block in BLOCKS if "dehghani" not in block])
def test_states_weighed_by_the_probabilities_are_the_mixture(compiled: Compiled, block: str) -> None:
    module = halting(compiled, block, emits_state=True)
    halting_states, results = watched(module)
    weights = [weight if weight.dim() > 1 else weight[:, None] for weight in results.weights]
    products = [weight[..., None] * result for weight, result in zip(weights, results.values, strict=True)]
    mean = torch.stack(products).sum(0)
    if isinstance(halting_states[0], Account):
        # The first probability belongs to the state before the loop, which emits nothing.
        spent, accepted = halting_states[0].spent, halting_states[0].accepted
        first = spent if spent.dim() > 1 else spent[:, None]
        took = accepted if accepted.dim() > 1 else accepted[:, None]
        entering = module.embed(TOKENS)
        mean = torch.where(took[..., None], (1 - first[..., None]) * mean + first[..., None] * entering, entering)
    close(mean[REAL], halting_states[-1].mixture[REAL])


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("supervise", ["last", "every"])
def test_the_loss_weighs_the_steps_of_a_halting_loop(compiled: Compiled, block: str, supervise: str) -> None:
    module = halting(compiled, block)
    batch = DeviceSplit(POSITIONS, CPU).batch(np.array([0, 1]))
    (lengths,) = batch.lengths.values()
    with module.keeping_steps() as steps:
        last = module(*batch.fields.values(), lengths=lengths)
    expected = torch.zeros((), dtype=torch.float64)
    assert batch.scored is not None
    for sample, position in batch.scored.nonzero().tolist():
        target = batch.targets[sample, position]
        weights = [own[sample, position] if own.dim() > 1 else own[sample] for own in steps.weights]
        results = [result[sample, position] for result in steps.values]
        match supervise:
            case "last":
                expected += F.cross_entropy(last[sample, position], target)
            case "every":
                for weight, result in zip(weights, results, strict=True):
                    expected += weight * F.cross_entropy(result, target)
    settings = settings_with(supervise=supervise)
    loss = training_loss(module, batch, module, settings)
    torch.testing.assert_close(loss.double(), expected / batch.scored.sum(), atol=1e-6, rtol=1e-6)
    loop = module.loop_of_results()
    assert loop is not None
    assert loop.step_results is None


def test_supervision_of_a_halting_loop_trains_the_probabilities(compiled: Compiled) -> None:
    module = halting(compiled, "token_halt[0.99]")
    batch = DeviceSplit(POSITIONS, CPU).batch(np.array([0, 1]))
    settings = settings_with(supervise="every")
    gradients = torch.autograd.grad(training_loss(module, batch, module, settings), list(module.parameters()))
    assert all(gradient.abs().sum() > 0 for gradient in gradients)


def test_the_steps_of_answers_that_are_positions_are_scored(compiled: Compiled) -> None:
    text = """
    model m[d = 4, steps = 2](x: tokens[n]) -> logits[n, n] {
        h = embed[d](x)
        y = repeat steps {
            h <- tanh(h + linear[d](h))
            emit scores(h, linear[d](h))
        }
        return y
    }
    """
    batch = DeviceSplit(POINTERS, CPU).batch(np.array([0, 1]))
    module = compiled(text, vocab=3, steps=1).double()
    settings = settings_with(supervise="every")
    expected = mean_loss(forward(module, batch), batch)  # a single step
    close(training_loss(module, batch, module, settings), expected)
