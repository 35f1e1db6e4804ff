"""A bare loop takes the same steps as `train`, without evaluation, logging and checkpoints."""

from archlang.plan.from_file import plan_recipe
from benchmarks.training import RECIPE, bare, full

FEW = {"train.steps": "2", "train.batch": "8", "model.d": "8", "model.steps": "2", "task.test_size": "8"}


def test_the_bare_loop_and_train_can_be_timed_on_the_recipe() -> None:
    plan = plan_recipe(RECIPE, sets=FEW)
    assert bare(plan) > 0
    assert full(plan) > 0
