"""Services that are told of a run: each in its own words, and none of them can end it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from archlang.plan.from_file import plan_recipe
from archlang.record.mistakes import RunError
from archlang.record.trackers import TrackerWarning
from archlang.runs import training

Said = list[tuple[str, tuple[Any, ...], dict[str, Any]]]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Said]:
    """Puts a service in place that writes down what it is told."""

    def install(name: str) -> Said:
        said: Said = []
        module = ModuleType(name)

        def told(word: str) -> Callable[..., None]:
            return lambda *args, **kwargs: said.append((word, args, kwargs))

        for word in (
            "init",
            "log",
            "finish",
            "set_experiment",
            "start_run",
            "set_tag",
            "log_params",
            "log_metrics",
            "end_run",
        ):
            setattr(module, word, told(word))
        module.search_runs = lambda **kwargs: [SimpleNamespace(info=SimpleNamespace(run_id="known"))]  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
        return said

    return install


def train(program: Path, folder: Path, *track: str) -> None:
    training.train(plan_recipe(program, sets={"train.steps": "4"}), folder, device="cpu", track=track)


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_a_service_is_told_of_settings_curves_and_the_end(
    name: str, service: Callable[[str], Said], program: Path, tmp_path: Path
) -> None:
    said = service(name)
    train(program, tmp_path / "run", name)
    words = [word for word, _, _ in said]
    assert (words[0], words[-1]) == ("init", "finish")
    assert said[0][2]["config"]["model.d"] == "8"
    logged = [(args[0], kwargs["step"]) for word, args, kwargs in said if word == "log"]
    assert [step for values, step in logged if "train/loss" in values] == [1, 2, 3, 4]
    assert any("valid/accuracy" in values for values, _ in logged)


def test_mlflow_goes_on_with_the_run_of_the_folder(
    service: Callable[[str], Said], program: Path, tmp_path: Path
) -> None:
    said = service("mlflow")
    train(program, tmp_path / "run", "mlflow")
    begun = {word: kwargs for word, _, kwargs in said}
    assert begun["start_run"]["run_id"] == "known"
    assert [kwargs["step"] for word, args, kwargs in said if word == "log_metrics" and "train/loss" in args[0]] == [
        1,
        2,
        3,
        4,
    ]
    assert said[-1][0] == "end_run"


def test_a_service_that_fails_ends_with_a_warning_and_the_run_goes_on(
    service: Callable[[str], Said], program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service("wandb")

    def lost(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no net")

    monkeypatch.setattr(sys.modules["wandb"], "log", lost)
    with pytest.warns(TrackerWarning, match="no net") as said:
        train(program, tmp_path / "run", "wandb")
    assert len(said) == 1
    assert (tmp_path / "run" / "results.json").exists()


@pytest.mark.parametrize(("name", "said"), [("wandbee", "the trackers are"), ("wandb", r"archlang\[wandb\]")])
def test_a_service_that_is_not_there_is_named(
    name: str, said: str, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(RunError, match=said):
        train(program, tmp_path / "run", name)
