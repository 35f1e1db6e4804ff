"""Trainings can be timed: beside a bare loop, several seeds at once, and the points of a table."""

from pathlib import Path

import pytest

from archlang.plan.from_file import plan_recipe
from benchmarks import scale, together, training
from benchmarks.points import Cost, cost

SMALL = {"train.batch": "8", "model.d": "8", "task.test_size": "8"}


def test_the_bare_loop_and_train_can_be_timed_on_the_recipe() -> None:
    plan = plan_recipe(training.RECIPE, sets={**SMALL, "train.steps": "2", "model.steps": "2"})
    assert training.bare(plan) > 0
    assert training.full(plan) > 0


def test_seeds_can_be_timed_separately_and_stacked_or_the_reason_why_not_is_raised() -> None:
    few = {**together.NEVER, **SMALL, "model.layers": "1"}
    plans = [plan_recipe(together.RECIPE, "baseline", sets={**few, "seed": seed}) for seed in "12"]
    assert together.alone(plans[0], "cpu", "32", 1, 2) > 0
    assert together.together(plans, "cpu", "32", 1, 2) > 0
    few["train.batch_of"] = "tokens"
    plans = [plan_recipe(together.RECIPE, "baseline", sets={**few, "seed": seed}) for seed in "12"]
    with pytest.raises(SystemExit, match="cannot train together"):
        together.together(plans, "cpu", "32", 1, 2)


def test_the_overhead_of_an_engine_is_the_time_of_its_workers_outside_training() -> None:
    assert Cost(points=10, workers=2, elapsed=6.0, training=11.0).overhead == pytest.approx(0.1)


def test_the_start_of_a_training_on_texts_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "_ROWS", 100)
    (tmp_path / "scale.arch").write_text(scale.PROGRAM)
    assert scale.write_texts(tmp_path / "texts.txt", 15_000) == 200
    _seconds, busy, peak, private = scale.measure(tmp_path, tmp_path / "cache")
    assert busy > 0
    assert peak > private > 0


@pytest.mark.slow
def test_every_point_is_run(tmp_path: Path) -> None:
    result = cost(3, 1, tmp_path)
    assert result.points == 3
    assert 0 < result.training <= result.elapsed
    assert len(list((tmp_path / "runs").glob("*/results.json"))) == 3
