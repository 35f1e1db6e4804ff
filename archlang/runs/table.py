"""The runs of a table: which ones are left to train, and the value of each cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archlang.plan.plan import Plan
from archlang.plan.table import TableCell, TableColumn, TablePlan
from archlang.record.mistakes import RunError
from archlang.record.reading import read_results
from archlang.record.schemas import Results
from archlang.runs.claims import group_value
from archlang.runs.points import Point, folder_name, is_done


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


@dataclass(frozen=True)
class TableRuns:
    """The runs of a table in one folder. Each has a folder of its own, named after its settings."""

    plan: TablePlan
    folder: Path
    precision: str = "32"
    device: str = "auto"

    def run_folder(self, plan: Plan) -> Path:
        return self.folder / folder_name(plan, self.precision)

    def points(self, deadline: float | None = None) -> tuple[Point, ...]:
        """Returns the runs that are not done: first those of the first seed, then those of the second, and so on.

        Args:
            deadline: When the runs stop with a checkpoint, in seconds since 1970."""
        names: dict[int, str] = {}
        for cell in self.plan.cells:
            for plan in cell.plans:
                names.setdefault(id(plan), f"{cell.row.title}, {cell.column.title}, seed {plan.seed}")
        return tuple(
            Point(names[id(plan)], plan, folder, self.device, self.precision, deadline)
            for plan in self.plan.plans
            if not is_done(folder := self.run_folder(plan))
        )

    def cell_results(self) -> tuple[CellResult, ...]:
        """Returns every cell, row by row, with the values of the runs that are done and can be read."""
        results: dict[int, Results | RunError | None] = {}
        cells = []
        for cell in self.plan.cells:
            values, missing, damaged = {}, [], {}
            for plan in cell.plans:
                if id(plan) not in results:
                    results[id(plan)] = _results(self.run_folder(plan))
                run_results = results[id(plan)]
                if isinstance(run_results, RunError):
                    damaged[plan.seed] = run_results.message
                elif run_results is None:
                    missing.append(plan.seed)
                elif (value := column_value(run_results, cell.column)) is not None:
                    values[plan.seed] = value
            cells.append(CellResult(cell, values, tuple(missing), damaged))
        return tuple(cells)


def _results(folder: Path) -> Results | RunError | None:
    """Returns the results of a run, None if it is not done, or why they cannot be read."""
    try:
        return read_results(folder)
    except RunError as error:
        return error


def column_value(results: Results, column: TableColumn) -> float | None:
    """Returns a column's value from the results of a run; None if it was not measured."""
    split, _, metric = column.metric.partition(".")
    result = results.splits.get(split)
    if result is None:
        return None
    groups = {name: group_value(value) for name, value in column.groups.items()}
    if column.index is not None:
        groups[results.breakdown] = column.index
    if not groups:
        return result.value(metric)
    if len(groups) == 1:
        ((group, value),) = groups.items()
        return result.groups.get(group, {}).get(value, {}).get(metric)
    return next((joint.metrics.get(metric) for joint in result.joint if joint.of == groups), None)
