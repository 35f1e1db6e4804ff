"""The runs of a table: which ones are left to train, the value of each cell, and the time that they took."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from pydantic import ValidationError

from archlang.disk.limits import LARGEST_INTEGER
from archlang.graph.card import COSTS, DEFAULT_LENGTH, cost_at
from archlang.plan.measures import RUN
from archlang.plan.plan import Plan, TableCell, TableColumn, TablePlan
from archlang.tasks.kit.metrics import rank
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import (
    has,
    is_in_use,
    read_record,
    read_recorded_runs,
    read_results,
    read_text,
    read_timings,
)
from archlang.train.record.schemas import METRICS, RESULTS, VERSIONS, RecordedRun, Results, VersionsRecord
from archlang.train.record.summaries import run_costs
from archlang.train.runs.evaluation import measure
from archlang.train.runs.points import Point, folder_name, require_no_file
from archlang.train.trainer import SAVED_EVERY, Interval


@dataclass(frozen=True)
class TimeSpent:
    """The wall time of the training steps and validations of finished runs, without their evaluations at the end.

    Args:
        runs: The number of these runs.
        untimed: The number of further finished runs, whose times are not recorded.
        core_hours: For runs on a CPU, the wall time multiplied by the threads of torch.
        gpu_hours: For runs on a GPU, the wall time.

    The numbers are upper bounds of what training has computed: a thread may wait, a machine may be shared, and seeds
    that trained together have logged the time of all of them each."""

    runs: int = 0
    core_hours: float = 0.0
    gpu_hours: float = 0.0
    untimed: int = 0

    def sentence(self) -> str:
        """Returns the time as a sentence, rounded up to hundredths of an hour."""
        hours = [(self.core_hours, "core-hours"), (self.gpu_hours, "GPU-hours")]
        amounts = " and ".join(f"{math.ceil(100 * count) / 100:.2f} {unit}" for count, unit in hours if count)
        times_threads = ", on a CPU times the threads" if self.core_hours else ""
        others = f"; {self.untimed} more have no times" if self.untimed else ""
        return (
            f"Cost: at most {amounts or '0.00 core-hours'} of training in {self.runs} finished "
            f"run{'s' if self.runs > 1 else ''} (wall time of steps and validation{times_threads}{others})."
        )


def time_spent(runs: Iterable[RecordedRun]) -> TimeSpent:
    """Returns the time that these runs have taken, and how many have none."""
    counted, untimed, core_seconds, gpu_seconds = 0, 0, 0.0, 0.0
    for run in runs:
        seconds = run.costs.get("seconds_of_steps", 0.0) + run.costs.get("seconds_of_evaluation", 0.0)
        if not run.costs or not 0 <= seconds <= LARGEST_INTEGER:
            untimed += 1  # The speeds of a damaged file may be next to nothing.
            continue
        processes = (run.versions, *run.versions.resumed)
        if all(process.device == "cpu" for process in processes):
            core_seconds += seconds * max(process.threads for process in processes)
        else:
            gpu_seconds += seconds
        counted += 1
    return TimeSpent(counted, core_seconds / 3600, gpu_seconds / 3600, untimed)


def recorded(folder: Path) -> RecordedRun | None:
    """Returns the record of a run; None if it is not done, or cannot be read."""
    try:
        if (results := read_results(folder)) is None:
            return None
        curve = sha256(read_text(folder, METRICS).encode()).hexdigest() if has(folder, METRICS) else ""
        versions = read_record(folder, VERSIONS, VersionsRecord)
        costs = run_costs(read_timings(folder))
        return RecordedRun(run=folder.name, curve=curve, versions=versions, costs=costs, results=results)
    except (RunError, ValidationError):
        return None


@dataclass(frozen=True)
class CellResult:
    """A cell with the value of each seed that is done and has one."""

    cell: TableCell
    values: Mapping[int, float]
    """by seed"""
    missing: tuple[int, ...]
    """seeds that are not done"""
    damaged: Mapping[int, str] = field(default_factory=dict)
    """by seed, what is wrong with results that cannot be read"""
    has_no_group: bool = False
    """whether a run measured the metric, but its split has no items of the group of the column"""
    option: str = ""
    """the title of the point with the best mean, if the cell shows the best of several"""
    other_runs_missing: int = 0
    """the runs of the other points that are not done"""
    is_running: bool = False
    """whether another process trains one of the missing seeds"""


@dataclass(frozen=True)
class FinishedRun:
    """The results of a run, and the folder that has the times of its steps, or the costs in its record."""

    results: Results
    folder: Path
    costs: Mapping[str, float] | None = None

    @staticmethod
    def read(folder: Path) -> FinishedRun | RunError | bool:
        """Reads the results of a run; if it is not done, whether it is running; or why they cannot be read."""
        try:
            results = read_results(folder)
            return is_in_use(folder) if results is None else FinishedRun(results, folder)
        except RunError as error:
            return error

    def value(self, column: TableColumn) -> tuple[float | None, bool]:
        """Returns the value of a column, None if it was not measured, and whether its split has no such samples."""
        split, _, metric = column.metric.partition(".")
        if split != RUN:
            return measure(self.results, column.metric, column.index, column.groups)
        costs = run_costs(read_timings(self.folder)) if self.costs is None else self.costs
        memory = costs.get("memory")
        return costs.get("seconds_of_steps") if metric == "seconds" else memory and memory / 2**20, False  # MiB


@dataclass(frozen=True)
class TableRuns:
    """The runs of a table in one folder. Each has a folder of its own, named after its settings. `also` is a folder
    with other finished runs, or a file with their records."""

    plan: TablePlan
    folder: Path
    precision: str = "32"
    device: str = "auto"
    devices: int = 1
    """of each run"""
    eager: bool = False
    also: Path | None = None

    def __post_init__(self) -> None:
        require_no_file(self.folder)

    @cached_property
    def records(self) -> Mapping[str, RecordedRun]:
        """The runs of a file with records, by the names of their folders."""
        return read_recorded_runs(self.also) if self.also is not None and self.also.is_file() else {}

    def run_folder(self, plan: Plan) -> Path:
        folder = self.folder / folder_name(plan, self.precision)
        other = None if self.also is None or has(folder, RESULTS) else self.also / folder.name
        return folder if other is None or not has(other, RESULTS) else other

    def finished(self, plan: Plan) -> FinishedRun | RunError | bool:
        """Returns the results of a run; if it is not done, whether it is running; or why they cannot be read."""
        folder = self.run_folder(plan)
        if (record := self.records.get(folder.name)) is not None and not has(folder, RESULTS):
            return FinishedRun(record.results, folder, record.costs)
        return FinishedRun.read(folder)

    def recorded(self) -> tuple[RecordedRun, ...]:
        """Returns the records of the runs that are done and can be read."""
        folders = dict.fromkeys(map(self.run_folder, self.plan.plans))
        runs = (recorded(folder) or self.records.get(folder.name) for folder in folders)
        return tuple(run for run in runs if run is not None)

    def points(self, deadline: float | None = None, save: Interval = SAVED_EVERY) -> tuple[Point, ...]:
        """Returns the runs that are not done: first those of the first seed, then those of the second, and so on.

        Args:
            deadline: When the runs stop with a checkpoint, in seconds since 1970.
            save: The steps or the time between checkpoints."""
        names: dict[int, str] = {}
        for cell in self.plan.cells:
            for plan in cell.plans:
                names.setdefault(id(plan), f"{cell.row.title}, {cell.column.title}, seed {plan.seed}")
        points = (
            Point(
                names[id(plan)], plan, folder, self.device, self.precision, deadline, save,
                devices=self.devices, eager=self.eager,
            )
            for plan in self.plan.plans
            if not has(folder := self.run_folder(plan), RESULTS) and folder.name not in self.records
        )  # fmt: skip
        return tuple(points)

    def cell_results(self) -> tuple[CellResult, ...]:
        """Returns every cell, row by row, with the values of the runs that are done and can be read."""
        results = {id(plan): self.finished(plan) for plan in self.plan.plans}
        return tuple(
            _average(cell, [_result(averaged, results) for averaged in cell.averaged])
            if cell.averaged
            else _result(cell, results)
            for cell in self.plan.cells
        )

    def time_spent(self) -> TimeSpent:
        """Returns the time that the runs which are done have taken."""
        return time_spent(self.recorded())


def _result(cell: TableCell, results: Mapping[int, FinishedRun | RunError | bool]) -> CellResult:
    if cell.options:
        chosen_by = replace(cell, column=TableColumn("", cell.best_by)) if cell.best_by else cell
        options = [
            (_cell_result(chosen_by, each.plans, results), _cell_result(cell, each.plans, results, each.title))
            for each in cell.options
        ]
        return _best_option(options)
    return _cell_result(cell, cell.plans, results)


def _average(cell: TableCell, parts: Sequence[CellResult]) -> CellResult:
    seeds = set.intersection(*(set(part.values) for part in parts))
    values = {seed: sum(part.values[seed] for part in parts) / len(parts) for seed in sorted(seeds)}
    missing = sorted({seed for part in parts for seed in part.missing})
    damaged = {seed: reason for part in parts for seed, reason in part.damaged.items()}
    has_no_group, is_running = any(part.has_no_group for part in parts), any(part.is_running for part in parts)
    return CellResult(cell, values, tuple(missing), damaged, has_no_group, is_running=is_running)


def _cell_result(
    cell: TableCell, plans: Iterable[Plan], results: Mapping[int, FinishedRun | RunError | bool], option: str = ""
) -> CellResult:
    values, missing, damaged = dict[int, float](), list[int](), dict[int, str]()
    has_no_group = is_running = False
    split, _, metric = cell.column.metric.partition(".")
    for plan in plans:
        run_results = results.get(id(plan), False)  # a cost of the model needs no run
        if split == RUN and metric in COSTS:
            cost = cost_at(plan.graph, metric, cell.column.index or DEFAULT_LENGTH).value
            if cost is not None:
                values[plan.seed] = float(cost)
        elif isinstance(run_results, RunError):
            damaged[plan.seed] = run_results.message
        elif isinstance(run_results, bool):
            missing.append(plan.seed)
            is_running |= run_results
        else:
            try:
                value, lacks_group = run_results.value(cell.column)
            except RunError as error:
                damaged[plan.seed] = error.message
                continue
            has_no_group |= lacks_group
            if value is not None:
                values[plan.seed] = value
    return CellResult(cell, values, tuple(missing), damaged, has_no_group, option, is_running=is_running)


def _best_option(options: Sequence[tuple[CellResult, CellResult]]) -> CellResult:
    """Each option with the results by which it is chosen, first, and with those that the cell shows."""
    metric = options[0][0].cell.column.metric.partition(".")[2]

    def rank_of_mean(option: tuple[CellResult, CellResult]) -> float:
        finite = [value for value in option[0].values.values() if math.isfinite(value)]
        return rank(metric, sum(finite) / len(finite)) if finite else -math.inf

    best = max(options, key=rank_of_mean)
    title = best[1].option if rank_of_mean(best) > -math.inf else ""
    missing = sum(len(option[1].missing) for option in options if option is not best)
    is_running = any(option[1].is_running for option in options)
    return replace(best[1], option=title, other_runs_missing=missing, is_running=is_running)
