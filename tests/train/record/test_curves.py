"""Each tracker gets the run through its own functions, and its errors do not end the run."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from archlang.errors import ErrorWithRemedy
from archlang.plan.from_file import plan_recipe
from archlang.train.record.mistakes import RunWarning
from archlang.train.runs import training

Calls = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Calls]:
    """Installs a fake tracker that records its calls."""

    def install(name: str) -> Calls:
        calls: Calls = []
        module = ModuleType(name)

        def recording(function: str) -> Callable[..., None]:
            return lambda *args, **kwargs: calls.append((function, args, kwargs))

        for function in (
            "init", "log", "finish", "set_experiment", "start_run", "set_tag", "log_params", "log_metrics", "end_run",
        ):  # fmt: skip
            setattr(module, function, recording(function))
        module.search_runs = lambda **kwargs: [SimpleNamespace(info=SimpleNamespace(run_id="known"))]  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return calls

    return install


def train(program: Path, folder: Path, *track: str) -> None:
    training.train(plan_recipe(program, sets={"train.steps": "4"}), folder, device="cpu", track=track)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_tracker_gets_settings_curves_and_the_end(
    name: str, service: Callable[[str], Calls], program: Path, tmp_path: Path
) -> None:
    calls = service(name)
    train(program, tmp_path / "run", name)
    functions = [function for function, _, _ in calls]
    assert (functions[0], functions[-1]) == ("init", "finish")
    assert calls[0][2]["config"]["model.d"] == "8"
    logged = [(args[0], kwargs["step"]) for function, args, kwargs in calls if function == "log"]
    assert [step for values, step in logged if "train/loss" in values] == [1, 2, 3, 4]
    assert any("valid/accuracy" in values for values, _ in logged)


def test_mlflow_resumes_the_run_of_the_folder(service: Callable[[str], Calls], program: Path, tmp_path: Path) -> None:
    calls = service("mlflow")
    train(program, tmp_path / "run", "mlflow")
    last_calls = {function: kwargs for function, _, kwargs in calls}
    assert last_calls["start_run"]["run_id"] == "known"
    logged = [(args[0], kwargs["step"]) for function, args, kwargs in calls if function == "log_metrics"]
    assert [step for values, step in logged if "train/loss" in values] == [1, 2, 3, 4]
    assert calls[-1][0] == "end_run"


def test_a_tracker_that_fails_causes_one_warning_and_the_run_continues(
    service: Callable[[str], Calls], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service("wandb")

    def fail(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no net")

    monkeypatch.setattr(sys.modules["wandb"], "log", fail)
    with pytest.warns(RunWarning, match="no net") as warnings:
        train(program, tmp_path / "run", "wandb")
    assert len(warnings) == 1
    assert (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize(("name", "message"), [("wandbee", "the trackers are"), ("wandb", r"archlang\[wandb\]")])
def test_a_missing_tracker_is_named(
    name: str, message: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ErrorWithRemedy, match=message):
        train(program, tmp_path / "run", name)
