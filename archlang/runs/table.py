"""A table's runs: which there are, which are done, and what each cell has measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.plan.plan import Plan
from archlang.plan.table import TableCell, TableColumn, TablePlan
from archlang.runs.points import Point, folder_name, is_done, results
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
        known: dict[int, dict[str, Any] | None] = {}
        found = []
        for cell in self.plan.cells:
            values, missing = {}, []
            for plan in cell.plans:
                if id(plan) not in known:
                    known[id(plan)] = results(self.place(plan))
                measured = known[id(plan)]
                if measured is None:
                    missing.append(plan.seed)
                elif (value := look_up(measured, cell.column)) is not None:
                    values[plan.seed] = value
            found.append(Measured(cell, values, tuple(missing)))
        return tuple(found)


def look_up(measured: Mapping[str, Any], column: TableColumn) -> float | None:
    """A column's number in `results.json`; None if it was not measured."""
    split, _, metric = column.metric.partition(".")
    found = measured.get("splits", {}).get(split)
    if found is None:
        return None
    wanted = {name: _number(value) for name, value in column.groups.items()}
    if column.index is not None:
        wanted[measured["breakdown"]] = column.index
    if not wanted:
        metrics = found["metrics"]
    elif len(wanted) == 1:
        ((group, number),) = wanted.items()
        metrics = found["groups"].get(group, {}).get(str(number), {})
    else:
        metrics = next((one["metrics"] for one in found["joint"] if one["of"] == wanted), {})
    value = metrics.get(metric)
    return None if value is None else float(value)


def _number(value: StaticValue) -> int:
    """A group as it is numbered: shares are counted in per cent."""
    if isinstance(value, float):
        return round(value * 100)
    return value if isinstance(value, int) else -1
