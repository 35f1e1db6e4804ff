"""Looking for the statics of a recipe with Optuna: a run in its own folder for each place, and a study that lasts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from archlang.plan.search import SearchPlan
from archlang.record import mistakes
from archlang.record.reading import read_results
from archlang.runs.engines import Engine
from archlang.runs.points import Done, Point, folder_name
from archlang.tasks.kit.metrics import LOWER_IS_BETTER
from archlang.train.settings import Settings

_STUDY = "study.sqlite"


@dataclass(frozen=True)
class Trial:
    """One place that was tried: its values, and the selecting metric that was reached there; None if it failed."""

    number: int
    values: dict[str, float | str]
    value: float | None
    folder: Path | None = None


@dataclass
class Tuning:
    """A study in a folder. What is there already is not tried again."""

    search: SearchPlan
    folder: Path
    seed: int = 0
    device: str = "auto"
    precision: str = "32"
    deadline: float | None = None
    plugin: str = ""
    """the Python file of a task of the user's own"""
    _study: Any = field(init=False, repr=False)  # Any: Optuna is imported late
    _running: dict[Path, Any] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        try:
            import optuna
        except ImportError:
            raise mistakes.engine_missing("tune") from None
        optuna.logging.set_verbosity(logging.WARNING)
        self.folder.mkdir(parents=True, exist_ok=True)
        study = optuna.create_study(
            storage=f"sqlite:///{(self.folder / _STUDY).absolute()}",
            study_name=self.search.recipe,
            direction="minimize" if self.metric in LOWER_IS_BETTER else "maximize",
            load_if_exists=True,
        )
        # A study that goes on does not draw its first places again.
        drawn = self.seed + len(study.get_trials(deepcopy=False))
        study.sampler = optuna.samplers.TPESampler(seed=drawn, constant_liar=True)
        self._study = study
        # What ran when a process died is tried again; its run goes on from its checkpoint.
        for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
            study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
            study.enqueue_trial(trial.params)

    @property
    def metric(self) -> str:
        """What is made as good as possible: the metric by which each run selects its weights."""
        return self._selecting[1]

    @property
    def _selecting(self) -> tuple[str, str]:
        plan = self.search.first()
        return Settings.of(plan.train.statics).selecting

    def run(self, trials: int, engine: Engine, stopping: Callable[[], bool]) -> Iterator[tuple[Trial, Done]]:
        """Tries so many more places, and tells of each when it has ended."""
        for done in engine.run(self._points(trials), stopping):
            asked = self._running.pop(done.point.folder)
            if done.stopped:
                continue  # still running as far as the study knows: it is taken up the next time
            results = read_results(done.point.folder)
            value = None if results is None else results.value(*self._selecting)
            if value is None:
                self._fail(asked)
            else:
                self._study.tell(asked, value)
            yield Trial(asked.number, dict(asked.params), value, done.point.folder), done

    def _points(self, trials: int) -> Iterator[Point]:
        for _ in range(trials):
            plan = None
            while plan is None:
                asked = self._study.ask()
                plan = self.search.plan(self._suggested(asked))
                if plan is None:
                    self._fail(asked)  # values that do not go together, such as three heads of a width of 64
            plan = replace(plan, task=replace(plan.task, plugin=self.plugin))
            place = self.folder / folder_name(plan, self.precision)
            if place in self._running:
                self._fail(asked)  # the same place is being tried
                continue
            self._running[place] = asked
            yield Point(f"trial {asked.number}", plan, place, self.device, self.precision, self.deadline)

    def _suggested(self, asked: Any) -> dict[str, float | str]:
        values: dict[str, float | str] = {}
        for space in self.search.spaces:
            if space.choices:
                values[space.path] = asked.suggest_categorical(space.path, list(space.choices))
            elif space.integers:
                values[space.path] = asked.suggest_int(space.path, int(space.low), int(space.high), log=space.log)
            else:
                values[space.path] = asked.suggest_float(space.path, space.low, space.high, log=space.log)
        return values

    def _fail(self, asked: Any) -> None:
        from optuna.trial import TrialState

        self._study.tell(asked, state=TrialState.FAIL)

    def trials(self) -> list[Trial]:
        """Every place that was tried to its end, the best first."""
        from optuna.trial import TrialState

        ended = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        ranked = sorted(ended, key=lambda one: one.value, reverse=self.metric not in LOWER_IS_BETTER)
        return [Trial(one.number, dict(one.params), one.value) for one in ranked]
