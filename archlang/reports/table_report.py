"""A report of a table: its cells beside their claims, and charts of every row by length or depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from archlang.plan.plan import TablePlan
from archlang.reports.charts import Chart, Curve, chart_svg, metric_chart
from archlang.reports.html import render
from archlang.reports.result_table import ResultTable
from archlang.reports.table_formats import terminal_table
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import read_record, read_results
from archlang.train.record.schemas import DATA, DataRecord, Results
from archlang.train.runs.table import TableRuns


@dataclass(frozen=True, eq=False)
class TableReport:
    """A table with the results of its finished runs.

    Args:
        results: By the title of a row, the results of its runs.
        trained: By group, the range of values that training has seen.
        folder: The folder of the runs."""

    table: ResultTable
    results: Mapping[str, tuple[Results, ...]]
    trained: Mapping[str, tuple[float, float]]
    folder: Path

    @staticmethod
    def read(plan: TablePlan, folder: Path, changed: Mapping[str, str]) -> TableReport:
        """Reads the report of a table from the folder of its runs, without running anything.

        Args:
            changed: The statics that differ from the recipes.

        Runs that are damaged are left out."""
        runs = TableRuns(plan, folder)
        table = ResultTable.of(
            plan.name, plan.rows, plan.columns, runs.cell_results(), changed=changed, spent=runs.time_spent()
        )
        results: dict[str, list[Results]] = {row.title: [] for row in plan.rows}
        trained: dict[str, tuple[float, float]] = {}
        read: set[Path] = set()
        for cell in plan.cells:
            for run in cell.plans:
                run_folder = runs.run_folder(run)
                if run_folder in read:
                    continue
                read.add(run_folder)
                try:
                    run_results = read_results(run_folder)
                    if run_results is None:
                        continue
                    of_training = read_record(run_folder, DATA, DataRecord).trained
                except RunError:
                    continue  # The table says which results are damaged.
                results[cell.row.title].append(run_results)
                for group, values in of_training.items():
                    low, high = trained.get(group, (np.inf, -np.inf))
                    trained[group] = (min([low, *values]), max([high, *values]))
        return TableReport(table, {title: tuple(of_row) for title, of_row in results.items()}, trained, folder)

    def charts(self) -> Iterator[Chart]:
        """Yields a chart for each split and breakdown of the runs. A row is a curve: the mean over its runs."""
        # Several columns may come from the same runs.
        kinds = dict.fromkeys(
            (split, results.breakdown, metric)
            for of_row in self.results.values()
            for results in of_row
            for split, split_result in results.splits.items()
            for metric in list(split_result.metrics)[:1]
            if len(split_result.groups.get(results.breakdown, {})) > 1
        )
        for split, group, metric in kinds:
            curves = [self._curve(title, split, group, metric) for title in self.results]
            names = next(
                (names for of_row in self.results.values() for results in of_row
                 if (names := results.group_names.get(group))), (),
            )  # fmt: skip
            yield metric_chart(metric, group, curves, self.trained.get(group), split, names)

    def _curve(self, title: str, split: str, group: str, metric: str) -> Curve:
        numbers: dict[int, list[float]] = {}
        for results in self.results[title]:
            groups = results.splits[split].groups if split in results.splits else {}
            for value, metrics in groups.get(group, {}).items():
                if (number := metrics.get(metric)) is not None:
                    numbers.setdefault(value, []).append(number)
        values = sorted(numbers)
        means = [float(np.mean(numbers[value])) for value in values]
        has_seeds = any(len(of_value) > 1 for of_value in numbers.values())
        deviations = [float(np.std(numbers[value], ddof=1)) if len(numbers[value]) > 1 else 0.0 for value in values]
        return Curve(title, values, means, deviations=deviations if has_seeds else ())

    def html(self) -> str:
        """Returns the report as an HTML file.

        Raises:
            PageError: matplotlib is not installed."""
        table = self.table
        return render(
            "report.html",
            title=table.name,
            subtitle=self.folder,
            measured=table.text_table(),
            sentences=table.sentences(),
            claimed=None,
            charts=map(chart_svg, self.charts()),
            settings=None,
        )

    def terminal(self) -> RenderableType:
        return terminal_table(self.table)
