"""A step of several seeds can be timed, separately and stacked."""

import pytest

from archlang.plan.from_file import plan_recipe
from benchmarks.together import NEVER, RECIPE, alone, together

FEW = {**NEVER, "train.batch": "8", "model.d": "8", "model.layers": "1", "task.test_size": "8"}


def test_separate_and_stacked_steps_can_be_timed_on_the_recipe() -> None:
    plans = [plan_recipe(RECIPE, "baseline", sets={**FEW, "seed": str(seed)}) for seed in (1, 2)]
    assert alone(plans[0], "cpu", "32", 1, 2) > 0
    assert together(plans, "cpu", "32", 1, 2) > 0


def test_plans_that_cannot_train_together_raise() -> None:
    plans = [
        plan_recipe(RECIPE, "baseline", sets={**FEW, "seed": str(seed), "train.batch_of": "tokens"}) for seed in (1, 2)
    ]
    with pytest.raises(SystemExit, match="cannot train together"):
        together(plans, "cpu", "32", 1, 2)
