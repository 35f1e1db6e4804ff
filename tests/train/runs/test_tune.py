"""A study ranks its trials, resumes after its process has died, and repeats no running trial."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from archlang.disk.folder import Folder
from archlang.errors import MachineError
from archlang.plan.from_file import plan_search
from archlang.plan.search import SearchPlan
from archlang.train.record.mistakes import RunError, RunMachineError
from archlang.train.record.reading import LOCK, read_record
from archlang.train.record.schemas import RunRecord
from archlang.train.runs import training
from archlang.train.runs.engines import Engine
from archlang.train.runs.points import Point, PointResult, run_point
from tests.sampling import one_in
from tests.tiny_run import StopAfter

tune = pytest.importorskip("archlang.train.runs.tune")
pytest.importorskip("optuna", reason="optuna is not installed")


class InProcess(Engine):
    """An engine without processes."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        for point in points:
            if stopping():
                return
            yield run_point(point)


class Interrupting(Engine):
    """An engine whose search looks at each run after some of its steps."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        for point in points:
            training.train(point.plan, point.folder, device="cpu", stop=StopAfter(9))
            stopping()
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
    trials = [trial for trial, _ in tuning.run(4, InProcess(), lambda: False)]
    assert len(trials) == 4
    values = [trial.value for trial in tuning.trials()]
    assert values == sorted(values, reverse=True)
    assert {trial.value for trial in trials} == set(values)
    assert all((trial.folder / "results.json").exists() for trial in trials)


def test_the_values_of_a_trial_are_those_that_its_run_had(program: Path, tmp_path: Path) -> None:
    line = "    search train.lr in 1e-3..1e-1 log, model.d in [4, 8]\n    claim"
    program.write_text(program.read_text().replace("    claim", line, 1))
    search = plan_search(program, sets={"train.steps": "2"})
    ((trial, _),) = tune.Tuning(search, tmp_path / "study", device="cpu").run(1, InProcess(), lambda: False)
    settings = read_record(trial.folder, "run.json", RunRecord).settings
    assert trial.values == {path: settings[path] for path in ("train.lr", "model.d")}
    assert isinstance(trial.values["model.d"], int)
    assert f"lr = {trial.values['train.lr']}" in search.text(trial.sampled)


def test_a_reopened_study_resumes_running_trials(search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    for _ in tuning.run(2, InProcess(), lambda: False):
        pass
    running = next(tuning._points(1))  # a trial whose process dies
    reopened = tune.Tuning(search, tmp_path / "study", device="cpu")
    ((_, result),) = reopened.run(1, InProcess(), lambda: False)
    assert result.point.folder == running.folder
    assert len(reopened.trials()) == 3


def test_looking_at_a_study_that_runs_changes_nothing_and_a_second_search_is_refused(
    search: SearchPlan, tmp_path: Path
) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    trials = tuning.run(2, InProcess(), lambda: False)
    next(trials)
    running = next(tuning._points(1))
    beside = tune.Tuning(search, tmp_path / "study", device="cpu")
    assert list(beside.run(0, InProcess(), lambda: False)) == []
    assert len(beside.trials()) == 1
    unfinished, is_searched = beside.unfinished()
    assert ([trial.number for trial in unfinished], is_searched) == ([1], True)
    with pytest.raises(RunError, match="another process searches in"):
        next(beside.run(1, InProcess(), lambda: False))
    tuning._study.tell(tuning._running.pop(running.folder), 0.5)
    assert len(list(trials)) == 1
    assert len(tuning.trials()) == 3
    assert beside.unfinished() == ([], False)


def test_a_trial_whose_run_another_process_still_trains_has_not_failed(search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    interrupted = next(tuning._points(1))
    assert training.train(interrupted.plan, interrupted.folder, device="cpu", stop=StopAfter(2)).stopped
    reopened = tune.Tuning(search, tmp_path / "study", device="cpu")
    with Folder.open(interrupted.folder) as folder, folder.lock(LOCK):
        ((trial, result),) = reopened.run(1, InProcess(), lambda: False)
    assert (trial.value, result.is_elsewhere) == (None, True)
    assert len(list(reopened.run(1, InProcess(), lambda: False))) == 1
    assert len(reopened.trials()) == 1


@pytest.mark.parametrize("prune", one_in(2, ["median", "hyperband"]))
def test_a_trial_with_bad_evaluations_is_pruned_and_ranked_last(
    prune: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "_SECONDS_BETWEEN_LOOKS", 0.0)
    line = "    search train.lr in [1e-3, 3.0], model.d in 4..16\n    claim"
    program.write_text(program.read_text().replace("    claim", line, 1))
    sets = {"train.steps": "4", "train.every": "1", "train.select": "valid.loss"}
    tuning = tune.Tuning(plan_search(program, sets=sets), tmp_path / "study", device="cpu", prune=prune)
    rates = ["1e-3"] * 5 + ["3.0"] * 4
    for width, rate in enumerate(rates, 4):
        tuning._study.enqueue_trial({"train.lr": rate, "model.d": width})
    trials = [trial for trial, _ in tuning.run(len(rates), Interrupting(), lambda: False)]
    pruned = [trial for trial in trials if trial.pruned]
    assert {trial.values["train.lr"] for trial in pruned} == {3.0}
    assert all((trial.folder / "results.json").exists() != trial.pruned for trial in trials)
    ranked = tuning.trials()
    assert {trial.number for trial in ranked[-len(pruned) :]} == {trial.number for trial in pruned}
    assert all(trial.value is not None for trial in ranked)


def test_a_pruned_trial_stays_pruned_after_its_search_has_died(search: SearchPlan, tmp_path: Path) -> None:
    interrupted = tune.Tuning(search, tmp_path / "study", device="cpu", prune="median")
    point = next(interrupted._points(1))
    training.train(point.plan, point.folder, device="cpu", stop=StopAfter(3))
    (point.folder / ".pruned").touch()
    reopened = tune.Tuning(search, tmp_path / "study", device="cpu", prune="median")
    ((trial, result),) = reopened.run(1, InProcess(), lambda: False)
    assert (trial.pruned, trial.folder, result.error) == (True, point.folder, "")
    assert not (point.folder / "results.json").exists()
    unpruned = tune.Tuning(search, tmp_path / "study", device="cpu")
    unpruned._study.enqueue_trial(trial.sampled)
    ((trial, _),) = unpruned.run(1, InProcess(), lambda: False)
    assert (trial.pruned, trial.folder) == (False, point.folder)


def test_a_study_has_one_recipe_for_all_trials(program: Path, search: SearchPlan, tmp_path: Path) -> None:
    tune.Tuning(search, tmp_path / "study", device="cpu")
    longer = plan_search(program, sets={"train.steps": "6"})
    with pytest.raises(RunError, match=r"have other settings:\n- .*steps = 5.*\n\+ .*steps = 6") as error:
        tune.Tuning(longer, tmp_path / "study", device="cpu")
    assert "--out" in error.value.remedy
    tune.Tuning(search, tmp_path / "study", device="cpu")


@pytest.mark.parametrize("name", ["study.sqlite", "study.sqlite-journal", ".jobs"])
def test_a_study_is_not_written_through_a_link(name: str, search: SearchPlan, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / name).symlink_to(tmp_path / "victim")
    with pytest.raises(RunError, match=f"{name} is a link"):
        tune.Tuning(search, tmp_path / "study", device="cpu")
    assert not (tmp_path / "victim").exists()


def test_a_study_that_is_no_database_is_damaged(search: SearchPlan, tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    (tmp_path / "study" / "study.sqlite").write_text("precious\n" * 100)
    with pytest.raises(RunError, match=r"study.sqlite is damaged: file is not a database"):
        tune.Tuning(search, tmp_path / "study", device="cpu")


def test_a_study_that_cannot_be_written_is_of_the_machine_and_its_trials_resume(
    search: SearchPlan, tmp_path: Path
) -> None:
    database, aside = tmp_path / "study" / "study.sqlite", tmp_path / "aside"
    tuning = tune.Tuning(search, tmp_path / "study", device="cpu")
    trials = tuning.run(2, InProcess(), lambda: False)
    next(trials)
    database.rename(aside)
    database.mkdir()
    with pytest.raises(RunMachineError, match="unable to open database file"):
        next(trials)
    database.rmdir()
    aside.rename(database)
    reopened = tune.Tuning(search, tmp_path / "study", device="cpu")
    assert len(list(reopened.run(1, InProcess(), lambda: False))) == 1
    assert len(reopened.trials()) == 2


def test_a_failed_trial_is_reported_and_not_ranked(program: Path, search: SearchPlan, tmp_path: Path) -> None:
    tuning = tune.Tuning(search, tmp_path / "study", device="cuda:77")
    ((trial, result),) = tuning.run(1, InProcess(), lambda: False)
    assert trial.value is None
    assert "cuda:77" in result.error
    assert tuning.trials() == []


def test_without_optuna_the_error_names_the_extra(
    search: SearchPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MachineError, match=r"archlang\[tune\]"):
        tune.Tuning(search, tmp_path / "study")


def test_a_search_without_a_point_within_the_bounds_ends(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "    search model.d in 300..400\n    where parameters <= 10_000\n    claim"
    program.write_text(program.read_text().replace("    claim", lines, 1))
    monkeypatch.setattr(tune, "_MOST_REFUSED", 5)
    tuning = tune.Tuning(plan_search(program, sets={"train.steps": "2"}), tmp_path / "study", device="cpu")
    with pytest.raises(RunError, match="5 points in a row are beyond the bounds"):
        list(tuning.run(1, InProcess(), lambda: False))
