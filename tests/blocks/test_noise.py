"""Noise: its deviation and its generator in training, and zeros in evaluation."""

import pytest
import torch

from archlang.blocks.noise import GumbelNoise, Noise, UniformNoise


def test_noise_has_its_deviation_and_comes_from_the_generator_of_torch() -> None:
    noise = Noise(std=0.5, d=100)
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.01)
    assert drawn.std().item() == pytest.approx(0.5, abs=0.01)
    torch.manual_seed(1)
    assert noise(torch.zeros(20, 50, 100)).equal(drawn)


@pytest.mark.parametrize(("std", "training"), [(0.5, False), (0.0, True)])
def test_noise_is_0_in_evaluation_and_for_a_deviation_of_0(std: float, training: bool) -> None:
    assert Noise(std=std, d=4).train(training)(torch.randn(2, 4)).equal(torch.zeros(2, 4))


def test_gumbel_noise_is_drawn_in_evaluation_too_with_the_mean_of_gumbel() -> None:
    noise = GumbelNoise(scale=2.0, d=100).eval()
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(2 * 0.57722, abs=0.02)
    assert drawn.var().item() == pytest.approx(4 * torch.pi**2 / 6, rel=0.05)
    assert drawn.isfinite().all()
    assert GumbelNoise(scale=0.0, d=4)(torch.randn(2, 4)).equal(torch.zeros(2, 4))


def test_uniform_noise_is_drawn_in_evaluation_too_within_its_bound() -> None:
    noise = UniformNoise(bound=0.5, d=100).eval()
    torch.manual_seed(1)
    drawn = noise(torch.ones(20, 50, 100))
    assert drawn.mean().item() == pytest.approx(0.0, abs=0.01)
    assert drawn.abs().max().item() == pytest.approx(0.5, abs=0.001)
    assert drawn.var().item() == pytest.approx(1 / 12, rel=0.05)
    assert UniformNoise(bound=0.0, d=4)(torch.randn(2, 4)).equal(torch.zeros(2, 4))
