"""Reports of runs and tables: curves, metrics by length or depth, claims and settings, on a page and in a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from archlang.graph.card import card
from archlang.plan.plan import TablePlan
from archlang.reports.charts import Chart, Curve, chart_svg, metric_chart, metric_title, with_points
from archlang.reports.pages import PageError, notebook_frame, render
from archlang.reports.result_table import ResultTable, terminal_table
from archlang.reports.run_results import TextTable, bar_line, claim_table, result_notes, result_table
from archlang.tasks.kit.metrics import LOWER_IS_BETTER
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import GRAPH, has, read_graph, read_metrics, read_record, read_results
from archlang.train.record.schemas import DATA, DataRecord, EvaluationMetrics, Results, SplitResult, StepMetrics
from archlang.train.record.summaries import RunSummary, summarize
from archlang.train.runs.table import TableRuns


@dataclass(frozen=True, eq=False)
class RunReport:
    """A run folder.

    Args:
        lines: The lines of metrics.jsonl.
        results: The contents of results.json; None until the run has finished.
        trained: By group, the values that training has seen."""

    run: RunSummary
    lines: tuple[StepMetrics | EvaluationMetrics, ...]
    results: Results | None
    trained: Mapping[str, Sequence[int]]

    @staticmethod
    def read(folder: Path) -> RunReport:
        """Reads the report of a run folder.

        Raises:
            RunError: It is not a run folder, or it is damaged."""
        run, data = summarize(folder), read_record(folder, DATA, DataRecord)
        return RunReport(run, read_metrics(folder), run.results, data.trained)

    @property
    def evaluations(self) -> list[EvaluationMetrics]:
        return [line for line in self.lines if isinstance(line, EvaluationMetrics)]

    @property
    def splits(self) -> Mapping[str, SplitResult]:
        """The final measurements of each split; empty until the run has finished."""
        return {} if self.results is None else self.results.splits

    @property
    def title(self) -> str:
        return "{recipe}: {model} on {task}, seed {seed}".format_map(self.run.facts)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The task's metrics, the most important first."""
        for split in self.splits.values():
            return tuple(split.metrics)
        return tuple(name for line in self.evaluations for name in line.metrics)[:1]

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups with several values, the most important first."""
        group_values: dict[str, set[int]] = {} if self.results is None else {self.results.breakdown: set()}
        for result in self.splits.values():
            for name, values in result.groups.items():
                group_values.setdefault(name, set()).update(values)
        return tuple(name for name, values in group_values.items() if len(values) > 1)

    # Charts

    def charts(self) -> Iterator[Chart]:
        """Yields every chart that has numbers: curves over steps, then metrics and depth by group."""
        splits = list(dict.fromkeys(line.split for line in self.evaluations))
        in_distribution = ("train", "iid") if self.results is None else self.results.in_distribution
        steps = [line for line in self.lines if isinstance(line, StepMetrics)]
        loss = [_curve("train", [(line.step, line.loss) for line in steps])]
        loss += [self._curve(split, "loss", split not in in_distribution) for split in splits]
        yield Chart("Loss", "step", "loss", with_points(loss), logarithmic=True)
        for metric in self.metrics[:1]:
            curves = [self._curve(split, metric, split not in in_distribution) for split in splits]
            name = metric_title(metric)
            percent = metric not in LOWER_IS_BETTER
            yield Chart(f"{name} by step", "step", name, with_points(curves), percent=percent)
        for group in self.groups:
            for metric in self.metrics[:1]:
                yield from self._charts_by_group(group, metric)
            yield from self._depth_by_group(group)
        depth = _curve("depth", [(line.step, line.mean_depth) for line in steps])
        if depth.x:
            yield Chart("Depth in training", "step", "mean steps of halting loops", (depth,))
        names = dict.fromkeys(name for line in steps for name in line.losses)
        if losses := with_points(
            [_curve(name, [(line.step, line.losses.get(name)) for line in steps]) for name in names]
        ):
            yield Chart("Auxiliary losses in training", "step", "auxiliary loss before weighting", losses)

    def _curve(self, split: str, metric: str, dashed: bool) -> Curve:
        points = [(line.step, line.value(metric)) for line in self.evaluations if line.split == split]
        return _curve(split, points, dashed)

    def _charts_by_group(self, group: str, metric: str) -> Iterator[Chart]:
        curves = []
        for split, result in self.splits.items():
            values = result.groups.get(group, {})
            curves.append(_curve(split, sorted((value, metrics.get(metric)) for value, metrics in values.items())))
        yield metric_chart(metric, group, curves, self._trained_range(group), names=self._names(group))

    def _depth_by_group(self, group: str) -> Iterator[Chart]:
        depths = {split: result.depth.groups.get(group, {}) for split, result in self.splits.items() if result.depth}
        if curves := with_points([_curve(split, sorted(of_split.items())) for split, of_split in depths.items()]):
            trained = self._trained_range(group)
            title, y, names = f"Mean steps by {group}", "mean steps of halting loops", self._names(group)
            yield Chart(title, group, y, curves, None if names else trained, marked=True, names=names)

    def _names(self, group: str) -> tuple[str, ...]:
        return () if self.results is None else self.results.group_names.get(group, ())

    def _trained_range(self, group: str) -> tuple[float, float] | None:
        values = self.trained.get(group, ())
        return (min(values), max(values)) if values else None

    # Tables

    def tables(self) -> tuple[TextTable, TextTable]:
        """Returns what was measured, and beside it what papers claim; without rows until the run has finished."""
        if self.results is None:
            return TextTable("Measured", [], []), claim_table(())
        return result_table(self.results), claim_table(self.results.claims)

    def notes(self) -> list[str]:
        """Returns the lines of `result_notes`; then, if other software or another machine resumed the run, which."""
        notes = [] if self.results is None else result_notes(self.results)
        return [*notes, *(self.run.history if len(self.run.history) > 1 else ())]

    # Formats

    def card(self) -> str:
        """Returns the text of the model's card; empty if a folder has no graph, or if it has blocks in Python of the
        user's own, whose acts are not stored."""
        graph = read_graph(self.run.folder, GRAPH) if has(self.run.folder, GRAPH) else None
        return "" if graph is None or graph.has_own_python else card(graph).text()

    def html(self) -> str:
        """Returns the report as an HTML file.

        Raises:
            PageError: matplotlib is not installed."""
        run, (measured, claimed) = self.run, self.tables()
        subtitle = run.state
        if self.results is not None:
            subtitle += f" at step {run.step}; the weights are those of step {self.results.best_step}"
        return render(
            "report.html",
            title=self.title,
            subtitle=subtitle,
            measured=measured,
            sentences=self.notes(),
            claimed=claimed,
            charts=map(chart_svg, self.charts()),
            settings=TextTable("Settings", ["setting", "value"], [*run.settings.items()]),
            card=self.card(),
        )

    def _repr_html_(self) -> str | None:
        # A notebook falls back to the text where matplotlib is not installed.
        try:
            return notebook_frame(self.html())
        except PageError:
            return None

    def terminal(self) -> RenderableType:
        """Returns the report for a terminal: tables, and bars in place of the charts by length or depth."""
        parts: list[RenderableType] = [Text(self.title, "bold"), Text(f"{self.run.state} at step {self.run.step}")]
        parts += [table.terminal() for table in self.tables() if table.rows]
        parts += map(Text, self.notes())
        for chart in self.charts():
            if chart.marked:
                parts.append(Text(f"\n{chart.title}", "bold"))
                parts += _bars(chart)
        return Group(*parts)


def _bars(chart: Chart) -> Iterator[Text]:
    highest = 1.0 if chart.percent else max((y for curve in chart.curves for y in curve.y), default=1.0)
    width = max([6, *(len(chart.text_of(x)) for curve in chart.curves for x in curve.x)])
    for curve in chart.curves:
        for x, y in zip(curve.x, curve.y, strict=True):
            trained = chart.shaded is not None and chart.shaded[0] <= x <= chart.shaded[1]
            number = f"{y:.1%}" if chart.percent else f"{y:.3g}"
            label = f"{curve.name:>8} {chart.text_of(x):>{width}}"
            yield bar_line(label, y / highest if highest > 0 else 0.0, f"{number}{'  trained' * trained}")


def _curve(name: str, points: Sequence[tuple[int, float | None]], dashed: bool = False) -> Curve:
    measured = [(x, y) for x, y in points if y is not None]
    return Curve(name, [x for x, _ in measured], [y for _, y in measured], dashed)


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
        titles: dict[Path, str] = {}
        for cell in plan.cells:
            for run in cell.plans:
                titles.setdefault(runs.run_folder(run), cell.row.title)
        for run_folder, title in titles.items():
            try:
                if (run_results := read_results(run_folder)) is None:
                    continue
                of_training = read_record(run_folder, DATA, DataRecord).trained
            except RunError:
                continue  # The table says which results are damaged.
            results[title].append(run_results)
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
            card="",
        )

    def terminal(self) -> RenderableType:
        return terminal_table(self.table)
