"""A table as a report: its cells beside their claims, and every row by length or depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from archlang.pages.html import render
from archlang.pages.reports.charts import Chart, Line, chart_svg
from archlang.pages.reports.result_table import ResultTable
from archlang.pages.reports.text_table import TextTable
from archlang.plan.table import TablePlan
from archlang.record.reading import read_record, read_results
from archlang.record.schemas import DATA, DataRecord, Results
from archlang.runs.table import TableRuns
from archlang.tasks.kit.metrics import LOWER_IS_BETTER


@dataclass(frozen=True, eq=False)
class TableReport:
    """A table with the results of its runs, by row: those that are done."""

    table: ResultTable
    done: Mapping[str, tuple[Results, ...]]
    trained: Mapping[str, tuple[float, float]]
    """by group, the lowest and the highest value that training has seen"""
    folder: Path

    @staticmethod
    def read(plan: TablePlan, folder: Path, changed: Mapping[str, str]) -> TableReport:
        """The report of a table from the folder of its runs; nothing is run.

        Raises:
            RunError: a run is damaged."""
        runs = TableRuns(plan, folder)
        table = ResultTable.of(plan.name, plan.rows, plan.columns, runs.cell_results(), changed=changed)
        done: dict[str, list[Results]] = {row.title: [] for row in plan.rows}
        trained: dict[str, tuple[float, float]] = {}
        seen: set[Path] = set()
        for cell in plan.cells:
            for one in cell.plans:
                place = runs.run_folder(one)
                if place in seen or (measured := read_results(place)) is None:
                    continue
                seen.add(place)
                done[cell.row.title].append(measured)
                for group, values in read_record(place, DATA, DataRecord).trained.items():
                    low, high = trained.get(group, (np.inf, -np.inf))
                    trained[group] = (min(low, *values), max(high, *values))
        return TableReport(table, {title: tuple(found) for title, found in done.items()}, trained, folder)

    def charts(self) -> Iterator[Chart]:
        """For each split and breakdown of the runs, a line for each row: the mean over seeds (and over whatever else
        the table varies). More than one column may come from the same runs."""
        kinds = dict.fromkeys(
            (split, one.breakdown, metric)
            for found in self.done.values()
            for one in found
            for split, result in one.splits.items()
            for metric in list(result.metrics)[:1]
            if len(result.groups.get(one.breakdown, {})) > 1
        )
        for split, group, metric in kinds:
            lines = [self._line(title, found, split, group, metric) for title, found in self.done.items()]
            drawn = tuple(line for line in lines if line.x)
            yield Chart(
                f"{metric.replace('_', ' ')} by {group}, {split}", group, metric.replace("_", " "), drawn,
                self.trained.get(group), percent=metric not in LOWER_IS_BETTER, marked=True,
            )  # fmt: skip

    def _line(self, title: str, found: tuple[Results, ...], split: str, group: str, metric: str) -> Line:
        values: dict[int, list[float]] = {}
        for one in found:
            groups = one.splits[split].groups if split in one.splits else {}
            for value, metrics in groups.get(group, {}).items():
                if (number := metrics.get(metric)) is not None:
                    values.setdefault(value, []).append(number)
        places = sorted(values)
        return Line(title, places, [float(np.mean(values[place])) for place in places])

    def html(self) -> str:
        """Returns the report as an HTML file.

        Raises:
            PageError: matplotlib is not installed."""
        table, columns = self.table, self.table.columns
        rows = [[row.title, *("\n".join(table.at(row, column).lines) for column in columns)] for row in table.rows]
        return render(
            "report.html",
            title=table.name,
            subtitle=self.folder,
            measured=TextTable("", ["", *(column.title for column in columns)], rows),
            sentences=table.sentences(),
            claimed=None,
            charts=map(chart_svg, self.charts()),
            settings=None,
        )

    def terminal(self) -> RenderableType:
        return Group(self.table.terminal(), *map(Text, self.table.sentences()))
