"""A table's runs: which there are, which are done, and what each cell has measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from archlang.plan.plan import Plan
from archlang.plan.table import TableCell, TableColumn, TablePlan
from archlang.record.reading import read_results
from archlang.record.schemas import Results
from archlang.runs.points import Point, folder_name, is_done
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class Measured:
    """A cell with what its seeds that are done measured; a seed that measures no such thing has no value."""

    cell: TableCell
    values: Mapping[int, float]
    missing: tuple[int, ...]
    """seeds that are not done"""


@dataclass(frozen=True)
class TableRuns:
    """The runs of a table in one folder, each in a folder of its own that is named after what it is."""

    plan: TablePlan
    folder: Path
    precision: str = "32"
    device: str = "auto"

    def place(self, plan: Plan) -> Path:
        return self.folder / folder_name(plan, self.precision)

    def points(self, deadline: float | None = None) -> tuple[Point, ...]:
        """The runs that are not done: all first seeds, then all second ones."""
        names: dict[int, str] = {}
        for cell in self.plan.cells:
            for plan in cell.plans:
                names.setdefault(id(plan), f"{cell.row.title}, {cell.column.title}, seed {plan.seed}")
        return tuple(
            Point(names[id(plan)], plan, place, self.device, self.precision, deadline)
            for plan in self.plan.plans
            if not is_done(place := self.place(plan))
        )

    def measured(self) -> tuple[Measured, ...]:
        """Every cell, row by row, with what is done."""
        known: dict[int, Results | None] = {}
        found = []
        for cell in self.plan.cells:
            values, missing = {}, []
            for plan in cell.plans:
                if id(plan) not in known:
                    known[id(plan)] = read_results(self.place(plan))
                measured = known[id(plan)]
                if measured is None:
                    missing.append(plan.seed)
                elif (value := look_up(measured, cell.column)) is not None:
                    values[plan.seed] = value
            found.append(Measured(cell, values, tuple(missing)))
        return tuple(found)


def look_up(results: Results, column: TableColumn) -> float | None:
    """Returns a column's number from the results of a run; None if it was not measured."""
    split, _, metric = column.metric.partition(".")
    result = results.splits.get(split)
    if result is None:
        return None
    groups = {name: _number(value) for name, value in column.groups.items()}
    if column.index is not None:
        groups[results.breakdown] = column.index
    if not groups:
        return result.metrics.get(metric)
    if len(groups) == 1:
        ((group, value),) = groups.items()
        return result.groups.get(group, {}).get(value, {}).get(metric)
    return next((joint.metrics.get(metric) for joint in result.joint if joint.of == groups), None)


def _number(value: StaticValue) -> int:
    """A group as it is numbered: shares are counted in per cent."""
    if isinstance(value, float):
        return round(value * 100)
    return value if isinstance(value, int) else -1
