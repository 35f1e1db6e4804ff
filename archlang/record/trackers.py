"""Curves in experiment trackers: Weights & Biases, MLflow and trackio, which are extras, and functions of a plugin."""

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.diagnostics.machine import needs_extra
from archlang.plan.plan import Plan
from archlang.plugins.functions import PluginFunction
from archlang.record import mistakes

TRACKERS = ("wandb", "mlflow", "trackio")


class TrackerWarning(UserWarning):
    """A tracker gets no further points; the run continues."""


@dataclass
class Tracker:
    """A tracker of one run. Its errors do not end the run: it warns once and stops."""

    name: str
    log: Callable[[Mapping[str, float], int], Any]
    finish: Callable[[], Any]
    _failed: bool = False

    def add(self, step: int, values: Mapping[str, float]) -> None:
        self._try(lambda: self.log(values, step))

    def close(self) -> None:
        self._try(self.finish)

    def _try(self, call: Callable[[], Any]) -> None:
        if self._failed:
            return
        try:
            call()
        except Exception as error:  # each service has its own errors
            self._failed = True
            warnings.warn(f"{self.name} gets no further points: {error}", TrackerWarning, stacklevel=4)


def open_trackers(names: Sequence[str], plan: Plan, folder: Path) -> list[Tracker]:
    """Returns the trackers of these names, with the run's settings. A resumed run folder resumes its run there.

    Raises:
        PluginError: A function is in no plugin, or its file cannot be imported.
        RunError: A tracker is unknown, not installed, or does not start."""
    return [_open(name, plan, folder) for name in names]


def _open(name: str, plan: Plan, folder: Path) -> Tracker:
    module, _, attribute = name.rpartition(".")
    if module:
        function = PluginFunction.load(plan.plugins, f"{module}:{attribute}", f"the tracker `{name}`")
        return Tracker(name, lambda values, step: function(step, dict(values)), lambda: None)
    if name not in TRACKERS:
        raise mistakes.unknown_tracker(name, TRACKERS)
    with needs_extra(name):
        service: Any = importlib.import_module(name)  # Any: the packages are extras
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
        raise mistakes.tracker_fails(name, str(error)) from error
    return Tracker(name, lambda values, step: service.log(dict(values), step=step), service.finish)


def _mlflow_run(service: Any, folder: str) -> str | None:
    """Returns the id of MLflow's run of this folder; None if there is none."""
    runs = service.search_runs(filter_string=f"tags.`archlang.folder` = '{folder}'", output_format="list")
    return runs[0].info.run_id if runs else None
