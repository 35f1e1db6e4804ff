"""Halting by given probabilities against sums in plain numbers, and the models that halt so."""

import math

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.blocks.bernoulli_halt import BernoulliHalt, Trials
from tests.closeness import same_gradients
from tests.shipped_models import load_page


def tallies(evaluation: str, chances: Tensor, training: bool = False) -> list[Trials]:
    """The tallies of a loop whose state is a row of `chances`, [steps b], after each step."""
    block = BernoulliHalt(evaluation=evaluation).train(training)
    tally = block.start(torch.zeros(chances.shape[1], 1, dtype=chances.dtype), None)
    results = []
    for row in chances:
        tally = block.advance(tally, row[:, None], None)
        results.append(tally)
    return results


def test_the_tally_equals_sums_over_the_steps() -> None:
    chances = torch.rand(5, 3, dtype=torch.float64).requires_grad_()
    results = tallies("never", chances)
    actual, expected = list[Tensor](), list[Tensor]()
    for sample in range(3):
        λ = chances[:, sample]
        left = [torch.ones((), dtype=λ.dtype)]
        for chance in λ:
            left.append(left[-1] * (1 - chance))
        p = [λ[t] * left[t] for t in range(5)]
        for t, tally in enumerate(results):
            weights = [*p[:t], left[t]]
            mixture = torch.stack([weight * chance for weight, chance in zip(weights, λ, strict=False)]).sum()
            ponder = torch.stack([step * weight for step, weight in enumerate(weights, start=1)]).sum()
            actual += [tally.mixture[sample, 0], tally.ponder[sample], tally.remaining[sample], tally.spent[sample]]
            expected += [mixture, ponder, left[t], torch.stack(p[: t + 1]).sum()]
    same_gradients(torch.stack(actual), torch.stack(expected), [chances])


def test_training_takes_all_steps_and_the_median_those_with_half_of_the_probability() -> None:
    chances = torch.tensor([[0.6, 0.1, 0.3], [0.0, 0.5, 0.3], [0.0, 0.9, 0.0], [0.0, 0.0, 0.9]])
    assert tallies("median", chances)[-1].steps.tolist() == [1, 2, 2]
    assert tallies("median", chances, training=True)[-1].steps.tolist() == [4, 4, 4]
    assert tallies("never", chances)[-1].steps.tolist() == [4, 4, 4]


def test_drawn_steps_follow_the_distribution() -> None:
    torch.manual_seed(0)
    chances = torch.tensor([0.2, 0.5, 0.0, 0.3])[:, None].expand(4, 20_000)
    steps = tallies("drawn", chances)[-1].steps
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
