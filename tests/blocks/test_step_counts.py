"""Claims about the distributions of numbers of steps."""

import math

import pytest
import torch

from archlang.blocks.step_counts import LogNormalPoisson, UniformSteps


def test_uniform_steps_are_all_integers_of_the_range() -> None:
    drawn = UniformSteps(low=2, high=5)(4000).flatten()
    values, counts = drawn.unique(return_counts=True)
    assert values.tolist() == [2, 3, 4, 5]
    assert counts.min() > 900


@pytest.mark.parametrize("sigma", [0.0, 0.5])
def test_the_mean_of_a_log_normal_poisson_is_one_more_than_its_static(sigma: float) -> None:
    mean = 8
    drawn = LogNormalPoisson(mean=mean, sigma=sigma)(50_000).flatten()
    # Var = E[rate] + Var[rate] of the Poisson distribution with a random rate.
    variance = mean + mean**2 * (math.exp(sigma**2) - 1)
    assert drawn.mean().item() == pytest.approx(mean + 1, abs=5 * math.sqrt(variance / drawn.numel()))
    assert drawn.var().item() == pytest.approx(variance, rel=0.1)
    assert torch.equal(drawn, drawn.round())
    assert drawn.min() >= 1
