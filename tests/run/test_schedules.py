"""Schedules are the published formulas."""

import math

import pytest
import torch

from archlang.run.schedules import first_beta, learning_rate
from archlang.run.settings import Settings


def settings(**changes: object) -> Settings:
    return Settings.model_validate({"lr": 0.05, "batch": 1, "steps": 100, "epochs": 0, **changes})


def test_root_rises_and_then_falls_with_the_square_root() -> None:
    root = settings(schedule="root", warmup=1000)
    assert learning_rate(root, 999, 10_000) == pytest.approx(0.05 / math.sqrt(1000))
    assert learning_rate(root, 0, 10_000) == pytest.approx(0.05 / 1000 / math.sqrt(1000))
    assert learning_rate(root, 3999, 10_000) == pytest.approx(0.05 / math.sqrt(4000))


def test_warmup_rises_to_a_constant() -> None:
    warm = settings(schedule="warmup", warmup=4)
    assert [learning_rate(warm, step, 10) for step in range(6)] == pytest.approx(
        [0.0125, 0.025, 0.0375, 0.05, 0.05, 0.05]
    )


def test_one_cycle_is_that_of_torch() -> None:
    total, warmup = 50, 10
    cycle = settings(schedule="onecycle", warmup=warmup)
    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=0.05)
    theirs = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.05, total_steps=total, pct_start=warmup / total, anneal_strategy="linear"
    )
    for step in range(total):
        group = optimizer.param_groups[0]
        assert learning_rate(cycle, step, total) == pytest.approx(group["lr"])
        assert first_beta(cycle, step, total) == pytest.approx(group["betas"][0])
        optimizer.step()
        if step + 1 < total:
            theirs.step()


def test_cosine_ends_at_nothing() -> None:
    cosine = settings(schedule="cosine", warmup=10)
    assert learning_rate(cosine, 10, 110) == pytest.approx(0.05)
    assert learning_rate(cosine, 60, 110) == pytest.approx(0.025)
    assert learning_rate(cosine, 109, 110) < 1e-4
