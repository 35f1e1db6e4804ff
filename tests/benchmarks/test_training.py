"""A bare loop takes the steps that `train` takes, without what is around them."""

from __future__ import annotations

from archlang.plan.from_file import plan_recipe
from benchmarks.training import RECIPE, bare, full

FEW = {"train.steps": "2", "train.batch": "8", "model.d": "8", "model.steps": "2", "task.test_size": "8"}


def test_both_can_be_timed_on_the_recipe() -> None:
    plan = plan_recipe(RECIPE, sets=FEW)
    assert bare(plan) > 0
    assert full(plan) > 0
