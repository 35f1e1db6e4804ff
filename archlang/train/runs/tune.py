"""A search for the statics of a recipe with Optuna: each trial is a run in its own folder."""

import logging
import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from archlang.disk.folder import Folder
from archlang.errors.machine import needs_extra
from archlang.plan.search import SearchPlan
from archlang.syntax.printer import one_line
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, rank
from archlang.train.record import mistakes
from archlang.train.record.mistakes import RunError, disk_errors_as
from archlang.train.record.reading import LOCK, has, is_in_use, read_metrics, read_results
from archlang.train.record.schemas import RESULTS, RUN, EvaluationMetrics
from archlang.train.runs.engines import Engine
from archlang.train.runs.mistakes import no_point, no_study, other_study, searched, study_fails
from archlang.train.runs.points import JOBS, PRUNED, Point, PointResult, folder_name, make_folder
from archlang.train.settings import Settings
from archlang.train.trainer import SAVED_EVERY, Interval

_STUDY = "study.sqlite"
_MOST_REFUSED = 1_000  # points in a row
_SECONDS_BETWEEN_LOOKS = 2.0
_BASE = "recipe"
"""the attribute of a study with the recipe of its trials, without the searched values"""


@dataclass(frozen=True)
class Trial:
    """A trial that ended."""

    number: int
    sampled: dict[str, float | str]
    """what the sampler chose, by path; `SearchPlan.text` takes it"""
    values: dict[str, int | float | str | bool]
    """the searched statics as the recipe of the trial has them, by path"""
    value: float | None
    """the selecting metric, of a pruned trial that of its last evaluation; None if the trial failed or has not ended"""
    folder: Path | None = None
    pruned: bool = False


@dataclass
class Tuning:
    """A study in a folder. Existing trials are not repeated."""

    search: SearchPlan
    folder: Path
    seed: int = 0
    """of the sampler; runs have the seed of the recipe"""
    device: str = "auto"
    precision: str = "32"
    deadline: float | None = None
    """when runs stop with a checkpoint, in seconds since 1970"""
    save: Interval = SAVED_EVERY
    """the steps or the time between checkpoints"""
    prune: str | None = None
    """`median` or `hyperband`: which trials end before their last step"""
    devices: int = 1
    """of each run"""
    eager: bool = False
    only_looks: bool = False
    """whether no trial will run: a study must exist, and nothing changes"""
    _study: Any = field(init=False, repr=False)  # Any: Optuna is an extra
    _states: Any = field(init=False, repr=False)
    _running: dict[Path, Any] = field(init=False, default_factory=dict, repr=False)
    _reported: Counter[Path] = field(init=False, default_factory=Counter, repr=False)
    _next_look: float = field(init=False, default=0.0, repr=False)

    def __post_init__(self) -> None:
        """Opens the study.

        Raises:
            RunError: the folder holds a run, another study, or no study to look at."""
        with needs_extra("tune"):
            import optuna
        self._states = optuna.trial.TrialState
        optuna.logging.set_verbosity(logging.WARNING)
        if has(self.folder, RUN):
            raise mistakes.another_run(self.folder, "a search has a folder of its own")
        if self.only_looks and not has(self.folder, _STUDY):
            raise no_study(self.folder)
        # SQLite and submitit would write through links.
        make_folder(self.folder, [JOBS, LOCK, *(f"{_STUDY}{suffix}" for suffix in ("", "-journal", "-wal", "-shm"))])
        # Without a pool, each query closes its connection: nothing else would.
        with self._explaining_storage():
            self._open_study()

    def _open_study(self) -> None:
        import optuna
        from sqlalchemy.pool import NullPool

        storage = optuna.storages.RDBStorage(
            f"sqlite:///{(self.folder / _STUDY).absolute()}", engine_kwargs={"poolclass": NullPool}
        )
        if self.only_looks and self.search.recipe not in optuna.get_all_study_names(storage):
            raise no_study(self.folder)
        study = optuna.create_study(
            storage=storage,
            study_name=self.search.recipe,
            direction="minimize" if self.metric in LOWER_IS_BETTER else "maximize",
            load_if_exists=True,
        )
        base = study.user_attrs.get(_BASE, self.search.base)
        if one_line(base) != one_line(self.search.base):
            raise other_study(self.folder, base, self.search.base)
        if not self.only_looks:
            study.set_user_attr(_BASE, base)
        # With the same seed, a reopened study would sample its first trials again.
        seed = self.seed + len(study.get_trials(deepcopy=False))
        study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        pruners = {None: "NopPruner", "median": "MedianPruner", "hyperband": "HyperbandPruner"}
        study.pruner = getattr(optuna.pruners, pruners[self.prune])()
        self._study = study

    @property
    def metric(self) -> str:
        """The metric to optimize: the one by which each run selects its weights."""
        return self._selecting[1]

    @property
    def _selecting(self) -> tuple[str, str]:
        plan = self.search.first()
        return Settings(plan.train.statics).selecting

    def run(self, trials: int, engine: Engine, stopping: Callable[[], bool]) -> Iterator[tuple[Trial, PointResult]]:
        """Runs more trials, and yields each when it has ended. Trials whose process has died are queued again: their
        runs resume.

        Raises:
            RunError: another search runs in the folder."""
        if trials:
            with self._explaining_storage(), self._locked():
                self._queue_again()
                yield from self._run(trials, engine, stopping)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with disk_errors_as(mistakes.not_written, self.folder), Folder.open(self.folder) as folder:
            try:
                lock = folder.lock(LOCK)
            except BlockingIOError:
                raise searched(self.folder) from None
        with lock:
            yield

    def _queue_again(self) -> None:
        # The lock does what a heartbeat would: no other search runs, so these trials have been interrupted.
        for trial in self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,)):
            self._study.tell(trial.number, state=self._states.FAIL)
            self._study.enqueue_trial(trial.params)

    def _run(self, trials: int, engine: Engine, stopping: Callable[[], bool]) -> Iterator[tuple[Trial, PointResult]]:
        def pruning() -> bool:
            if self.prune and time.monotonic() >= self._next_look:
                for folder, trial in self._running.items():
                    self._report(folder, trial)
                self._next_look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
            return stopping()

        for point_result in engine.run(self._points(trials), pruning):
            folder = point_result.point.folder
            trial = self._running.pop(folder)
            self._report(folder, trial)
            if point_result.stopped and self.prune and has(folder, PRUNED):
                pruned = self._study.tell(trial, state=self._states.PRUNED)
                yield self._trial(trial, pruned.value, folder, pruned=True), point_result
                continue
            if point_result.stopped:
                continue  # The study keeps it as running; reopening the study resumes it.
            if point_result.is_elsewhere or point_result.is_of_machine:
                # As a job of SLURM whose search was killed, or a run whose process was: the next search resumes it.
                yield self._trial(trial, None, folder), point_result
                continue
            try:
                results = read_results(folder)
            except RunError:
                results = None  # A damaged run is a failed trial.
            value = None if results is None else results.value(*self._selecting)
            if value is None:
                self._fail(trial)
            else:
                self._study.tell(trial, value)
            yield self._trial(trial, value, folder), point_result

    def _report(self, folder: Path, trial: Any) -> None:
        """Reports the evaluations of a run, and marks a run that the pruner ends."""
        split, metric = self._selecting
        try:
            lines = [line for line in read_metrics(folder) if isinstance(line, EvaluationMetrics)]
        except RunError:
            return  # A damaged run fails at its end.
        values = [line.value(metric) for line in lines if line.split == split]
        for number, value in enumerate(values[self._reported[folder] :], 1 + self._reported[folder]):
            trial.report(math.nan if value is None else value, number)
            self._reported[folder] = number
            if trial.should_prune() and not has(folder, RESULTS):
                with disk_errors_as(mistakes.not_written, folder), Folder.open(folder) as opened:
                    opened.write(PRUNED, "")
                return

    def _points(self, trials: int) -> Iterator[Point]:
        for _ in range(trials):
            plan, refused = None, 0
            while plan is None:
                trial = self._study.ask()
                plan = self.search.plan(self._suggest(trial))
                if plan is None:
                    self._fail(trial)  # incompatible values, such as three heads of a width of 64, or beyond a bound
                    refused += 1
                if refused == _MOST_REFUSED:
                    raise no_point(_MOST_REFUSED)
            folder = self.folder / folder_name(plan, self.precision)
            if folder in self._running:
                self._fail(trial)  # the same values as a running trial
                continue
            make_folder(self.folder, [folder.name])
            self._running[folder] = trial
            self._reported[folder] = 0
            yield Point(
                f"trial {trial.number}", plan, folder, self.device, self.precision, self.deadline, self.save,
                devices=self.devices, eager=self.eager, is_prunable=bool(self.prune),
            )  # fmt: skip

    def _suggest(self, trial: Any) -> dict[str, float | str]:
        values: dict[str, float | str] = {}
        for space in self.search.spaces:
            if space.choices:
                values[space.path] = trial.suggest_categorical(space.path, list(space.choices))
            elif space.integers:
                values[space.path] = trial.suggest_int(space.path, int(space.low), int(space.high), log=space.log)
            else:
                values[space.path] = trial.suggest_float(space.path, space.low, space.high, log=space.log)
        return values

    def _fail(self, trial: Any) -> None:
        self._study.tell(trial, state=self._states.FAIL)

    def trials(self) -> list[Trial]:
        """Returns every trial that succeeded, the best first, and then every trial that was pruned."""
        with self._explaining_storage():
            ended = self._study.get_trials(deepcopy=False, states=(self._states.COMPLETE, self._states.PRUNED))
        trials = [self._trial(trial, trial.value, pruned=trial.state == self._states.PRUNED) for trial in ended]

        def order(trial: Trial) -> tuple[bool, float]:
            return trial.pruned, math.inf if trial.value is None else -rank(self.metric, trial.value)

        return sorted(trials, key=order)

    def unfinished(self) -> tuple[list[Trial], bool]:
        """Returns the trials that have not ended, and whether another process runs them now; otherwise they have been
        interrupted, and resume with the next search."""
        trials = self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,))
        return [self._trial(trial, None) for trial in trials], is_in_use(self.folder)

    def _trial(self, trial: Any, value: float | None, folder: Path | None = None, pruned: bool = False) -> Trial:
        return Trial(trial.number, dict(trial.params), self.search.written(trial.params), value, folder, pruned)

    @contextmanager
    def _explaining_storage(self) -> Iterator[None]:
        from optuna.exceptions import StorageInternalError
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except (StorageInternalError, SQLAlchemyError) as error:
            own = _database_error(error)
            # SQLite's other errors say that the file is none of its own.
            report = study_fails if isinstance(own, sqlite3.OperationalError) else mistakes.damaged
            raise report(self.folder / _STUDY, str(own)) from error


def _database_error(error: BaseException) -> BaseException:
    while not isinstance(error, sqlite3.Error) and error.__cause__ is not None:
        error = error.__cause__
    return error
