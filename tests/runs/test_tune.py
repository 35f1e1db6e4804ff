"""A study: it finds the better place, goes on after its process has died, and tries nothing twice at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from archlang.plan.from_file import plan_search
from archlang.plan.search import SearchPlan
from archlang.record.mistakes import RunError
from archlang.runs.points import Point, PointResult, run_point

tune = pytest.importorskip("archlang.runs.tune")
pytest.importorskip("optuna", reason="optuna is not installed")


class Here:
    """An engine without processes."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        for point in points:
            if stopping():
                return
            yield run_point(point)


@pytest.fixture
def search(program: Path) -> SearchPlan:
    text = program.read_text().replace(
        "    claim", "    search train.lr in [1e-9, 1e-2], model.d in 4..16\n    claim", 1
    )
    program.write_text(text)
    return plan_search(program, sets={"train.steps": "5"})


def test_every_trial_is_a_run_and_the_best_comes_first(search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    told = [trial for trial, _ in tuning.run(4, Here(), lambda: False)]
    assert len(told) == 4
    values = [trial.value for trial in tuning.trials()]
    assert values == sorted(values, reverse=True)
    assert {trial.value for trial in told} == set(values)
    assert all((trial.folder / "results.json").exists() for trial in told)


def test_a_study_goes_on_and_tries_again_what_was_running(search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    for _ in tuning.run(2, Here(), lambda: False):
        pass
    asked = next(tuning._points(1))  # a trial whose process dies
    again = tune.Tuning(search, tmp_path / "study", device="cpu")
    ((_, done),) = again.run(1, Here(), lambda: False)
    assert done.point.folder == asked.folder
    assert len(again.trials()) == 3


def test_a_trial_that_fails_is_told_and_not_ranked(program: Path, search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cuda:77")
    ((trial, done),) = tuning.run(1, Here(), lambda: False)
    assert trial.value is None
    assert "cuda:77" in done.error
    assert tuning.trials() == []


def test_without_optuna_it_says_how_to_install_it(
    search: SearchPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(RunError, match=r"archlang\[tune\]"):
        tune.Tuning(search, tmp_path / "study")
