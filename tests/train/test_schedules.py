"""Schedules are the published formulas, and torch's where torch has them."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, OneCycleLR, SequentialLR

from archlang.train.settings import Settings
from tests.train.settings_of_a_run import SETTINGS

PEAK = 0.05


def settings(**changes: Any) -> Settings:
    return SETTINGS.changed(**{"lr": PEAK, **changes})


def warmup(optimizer: Optimizer, steps: int) -> LinearLR:
    return LinearLR(optimizer, start_factor=1 / steps, total_iters=steps - 1)


# Theirs, for 60 steps with a warm-up of 10.
THEIRS: dict[str, Callable[[Optimizer], LRScheduler]] = {
    "warmup": lambda optimizer: warmup(optimizer, 10),
    "cosine": lambda optimizer: SequentialLR(
        optimizer, [warmup(optimizer, 10), CosineAnnealingLR(optimizer, T_max=50)], milestones=[10]
    ),
    "root": lambda optimizer: LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10) / math.sqrt(max(step + 1, 10))),
    "onecycle": lambda optimizer: OneCycleLR(
        optimizer, PEAK, total_steps=60, pct_start=10 / 60, anneal_strategy="linear"
    ),
    "constant": lambda optimizer: LambdaLR(optimizer, lambda step: 1.0),
}


@pytest.mark.parametrize("name", THEIRS)
# torch's SequentialLR calls its parts with a step number, which torch itself warns of.
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_a_schedule_is_that_of_torch(name: str) -> None:
    ours = settings(schedule=name, warmup=0 if name == "constant" else 10)
    optimizer = AdamW([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    theirs = THEIRS[name](optimizer)
    for step in range(60):
        group = optimizer.param_groups[0]
        assert ours.learning_rate(step, 60) == pytest.approx(group["lr"]), step
        beta1 = ours.first_beta(step, 60) if ours.moves_first_beta else 0.9
        assert beta1 == pytest.approx(group["betas"][0]), step
        optimizer.step()
        if step < 59:
            theirs.step()


@pytest.mark.parametrize(
    ("lr", "steps", "peak"),
    [(0.05, 1000, 1.58e-3), (0.0125, 8000, 1.40e-4), (0.05, 8000, 5.6e-4), (0.025, 8000, 2.8e-4)],
)
def test_the_published_rates_of_root_have_the_published_peaks(lr: float, steps: int, peak: float) -> None:
    root = settings(lr=lr, schedule="root", warmup=steps)
    rates = [root.learning_rate(step, 10 * steps) for step in range(2 * steps)]
    assert max(rates) == rates[steps - 1] == pytest.approx(peak, rel=0.01)


def test_wsd_warms_up_stays_and_falls_linearly_to_zero() -> None:
    wsd = settings(schedule="wsd", warmup=4, cooldown=0.25)
    rates = [wsd.learning_rate(step, 20) / PEAK for step in range(20)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, *[1.0] * 13, 0.8, 0.6, 0.4, 0.2])


def test_one_cycle_begins_at_a_25th_and_moves_the_first_beta_against_the_rate() -> None:
    cycle = settings(schedule="onecycle", warmup=50)
    assert cycle.learning_rate(0, 500) == pytest.approx(PEAK / 25)
    assert cycle.learning_rate(49, 500) == pytest.approx(PEAK)
    assert cycle.learning_rate(499, 500) == pytest.approx(PEAK / 250_000)
    assert [cycle.first_beta(step, 500) for step in (0, 49, 499)] == pytest.approx([0.95, 0.85, 0.95])


@pytest.mark.parametrize("name", [*THEIRS, "wsd"])
@pytest.mark.parametrize(("steps", "total"), [(0, 1), (0, 7), (1, 1), (1, 7), (7, 7), (50, 7)])
def test_every_length_of_run_has_a_rate_at_every_step(name: str, steps: int, total: int) -> None:
    ours = settings(schedule=name, warmup=steps)
    rates = [ours.learning_rate(step, total) for step in range(total)]
    assert all(0 <= rate <= PEAK * 1.000001 for rate in rates)
