"""Curves for those who watch their runs elsewhere: Weights & Biases, MLflow, trackio. Each is an extra."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.plan.plan import Plan
from archlang.record import mistakes

TRACKERS = ("wandb", "mlflow", "trackio")


class TrackerWarning(UserWarning):
    """A tracker got no more points; the run itself goes on."""


@dataclass
class Tracker:
    """One service that is told of a run. What it cannot take does not end the run."""

    name: str
    log: Callable[[Mapping[str, float], int], Any]
    finish: Callable[[], Any]
    _given_up: bool = False

    def add(self, step: int, values: Mapping[str, float]) -> None:
        self._try(lambda: self.log(values, step))

    def close(self) -> None:
        self._try(self.finish)

    def _try(self, act: Callable[[], Any]) -> None:
        if self._given_up:
            return
        try:
            act()
        except Exception as error:  # whatever a service raises when it cannot be reached
            self._given_up = True
            warnings.warn(f"{self.name} gets no more points: {error}", TrackerWarning, stacklevel=4)


def open_trackers(names: Sequence[str], plan: Plan, folder: Path) -> list[Tracker]:
    """The services of these names, told of the run's settings. Of a folder that goes on, the same run goes on.

    Raises:
        RunError: one of them is unknown, not installed, or refuses to begin."""
    return [_open(name, plan, folder) for name in names]


def _open(name: str, plan: Plan, folder: Path) -> Tracker:
    if name not in TRACKERS:
        raise mistakes.unknown_tracker(name, TRACKERS)
    try:
        service: Any = importlib.import_module(name)  # Any: none of them is needed to check this file
    except ImportError:
        raise mistakes.extra_missing(name) from None
    config = {path: str(value) for path, value in plan.settings.items()}
    try:
        if name == "mlflow":
            service.set_experiment(plan.recipe)
            service.start_run(run_id=_mlflow_run(service, str(folder.absolute())), run_name=folder.name)
            service.set_tag("archlang.folder", str(folder.absolute()))
            service.log_params(config)
            return Tracker(name, lambda values, step: service.log_metrics(dict(values), step=step), service.end_run)
        if name == "trackio":
            service.init(project="archlang", name=folder.name, config=config, resume="allow")
        else:
            service.init(
                project="archlang", name=folder.name, id=folder.name, dir=str(folder), config=config, resume="allow"
            )
    except Exception as error:
        raise mistakes.tracker_refuses(name, str(error)) from error
    return Tracker(name, lambda values, step: service.log(dict(values), step=step), service.finish)


def _mlflow_run(service: Any, folder: str) -> str | None:
    """The run of this folder that MLflow knows already."""
    found = service.search_runs(filter_string=f"tags.`archlang.folder` = '{folder}'", output_format="list")
    return found[0].info.run_id if found else None
