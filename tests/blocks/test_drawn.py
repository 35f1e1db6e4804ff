"""Blocks that draw: noise, dropout and numbers of steps."""

import math

import pytest
import torch

from archlang.blocks.noise import Dropout, GumbelNoise, LogNormalPoisson, Noise, UniformNoise, UniformSteps


def test_noise_has_its_deviation_and_comes_from_the_generator_of_torch() -> None:
    noise = Noise(std=0.5, evaluation="zeros", d=100)
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.01)
    assert drawn.std().item() == pytest.approx(0.5, abs=0.01)
    torch.manual_seed(1)
    assert noise(torch.zeros(20, 50, 100)).equal(drawn)


@pytest.mark.parametrize(("std", "training"), [(0.5, False), (0.0, True)])
def test_noise_is_0_in_evaluation_and_for_a_deviation_of_0(std: float, training: bool) -> None:
    assert Noise(std=std, evaluation="zeros", d=4).train(training)(torch.randn(2, 4)).equal(torch.zeros(2, 4))


def test_gumbel_noise_is_drawn_in_evaluation_too_with_the_mean_of_gumbel() -> None:
    noise = GumbelNoise(scale=2.0, d=100).eval()
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(2 * 0.57722, abs=0.02)
    assert drawn.var().item() == pytest.approx(4 * torch.pi**2 / 6, rel=0.05)
    assert drawn.isfinite().all()
    assert GumbelNoise(scale=0.0, d=4)(torch.randn(2, 4)).equal(torch.zeros(2, 4))


def test_uniform_noise_is_drawn_in_evaluation_too_within_its_bound() -> None:
    noise = UniformNoise(bound=0.5, evaluation="drawn", d=100).eval()
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.01)
    assert drawn.abs().max().item() == pytest.approx(0.5, abs=0.001)
    assert drawn.var().item() == pytest.approx(1 / 12, rel=0.05)
    assert UniformNoise(bound=0.0, evaluation="drawn", d=4)(torch.randn(2, 4)).equal(torch.zeros(2, 4))


def test_evaluation_draws_noise_or_has_zeros_as_it_says() -> None:
    torch.manual_seed(1)
    for block, values in ((Noise, {"std": 0.5}), (UniformNoise, {"bound": 0.5})):
        x = torch.ones(2, 3, 4)
        assert block(**values, evaluation="drawn").eval()(x).any()
        assert not block(**values, evaluation="zeros").eval()(x).any()
        assert block(**values, evaluation="zeros").train()(x).any()


def test_numbers_are_dropped_at_the_rate_and_the_others_scaled_up() -> None:
    y = Dropout(rate=0.2, d=100)(torch.ones(20, 50, 100))
    assert y.eq(0).float().mean().item() == pytest.approx(0.2, abs=0.01)
    assert y[y != 0].unique().tolist() == pytest.approx([1.25])


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
