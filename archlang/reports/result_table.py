"""The results of a table: its cells with statistics over seeds and verdicts, in the formats that show them.

Titles and names come from programs and run folders: each format shows them as they are, so they add no markup. JSON has
their exact values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from typing import Any

from rich.console import ConsoleOptions, Group, RenderableType, RenderResult
from rich.text import Text

from archlang.errors.names import percent_of, plural
from archlang.errors.visible import json_text, visible
from archlang.graph.card import COSTS, failures
from archlang.plan.plan import TableColumn, TableRow
from archlang.reports.claims import SOLVED, ClaimVerdict, PowerLaw, SeedStatistics, judge, paired_test
from archlang.reports.run_results import TextTable
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, decimals, rank
from archlang.train.runs.table import CellResult, TimeSpent


@dataclass(frozen=True)
class ResultCell:
    """A cell with the statistics of its seeds, None if no seed is done, and a verdict, None if there is no claim."""

    measured: CellResult
    statistics: SeedStatistics | None
    verdict: ClaimVerdict | None
    predicted: tuple[str, ...] = ()
    """the problems of the task that models like the row's cannot solve at all lengths, by a theorem of the card"""
    most_seeds: int = 0
    """the largest number of seeds of a cell of the table"""

    @staticmethod
    def of(measured: CellResult) -> ResultCell:
        statistics = SeedStatistics.of(tuple(measured.values.values()))
        claim = None if measured.cell.is_published_only else measured.cell.claim
        verdict = None if claim is None else judge(claim, statistics)
        if verdict is ClaimVerdict.NOT_RUN and measured.has_no_group:
            verdict = ClaimVerdict.NO_GROUP
        plans, split = measured.cell.plans, measured.cell.column.metric.partition(".")[0]
        predicted = failures(plans[0].graph, plans[0].problems) if plans and split == "test" else ()
        return ResultCell(measured, statistics, verdict, predicted)

    @property
    def row(self) -> TableRow:
        return self.measured.cell.row

    @property
    def column(self) -> TableColumn:
        return self.measured.cell.column

    @property
    def is_fraction(self) -> bool:
        return self._metric not in LOWER_IS_BETTER

    @property
    def _metric(self) -> str:
        return self.column.metric.partition(".")[2]

    def format(self, value: float) -> str:
        """Formats a fraction in per cent, as papers of the field do, and another number with two decimals, or a squared
        error with four."""
        return f"{100 * value:.1f}" if self.is_fraction else f"{value:.{decimals(self._metric)}f}"

    @property
    def result(self) -> str:
        """The mean and the standard deviation, such as `98.2 ± 1.3`, or why there is none; with the number of seeds if
        it is 1, less than planned or less than that of another cell."""
        if self.measured.cell.is_published_only:
            return "absent" if self.row.why else "published"
        if self.statistics is None:
            if self.measured.damaged:
                return "damaged"
            if self.measured.has_no_group:
                return "no such group"
            if self.measured.is_running:
                return "running"
            return "not run" if self.measured.missing else "not measured"
        if _is_cost(self.column):  # of a model, and not of a seed
            return f"{self.statistics.mean:,.0f}"
        mean, deviation, seeds = self.statistics.mean, self.statistics.deviation, self.statistics.seeds
        planned = len({*self.measured.values, *self.measured.missing, *self.measured.damaged})
        shown = self.format(mean) if deviation is None else f"{self.format(mean)} ± {self.format(deviation)}"
        if seeds < planned:
            return f"{shown} ({seeds} of {planned} seeds)"
        return shown if 1 < seeds >= self.most_seeds else f"{shown} ({seeds} seed{'s' * (seeds > 1)})"

    @property
    def details(self) -> str:
        """The median, the interval, and how many seeds solved the task; empty for fewer than two seeds."""
        statistics = self.statistics
        if statistics is None or statistics.interval is None or _is_cost(self.column):
            return ""
        low, high = statistics.interval
        seeds = f"{statistics.solved()}/{statistics.seeds} solved" if self.is_fraction else f"{statistics.seeds} seeds"
        return f"median {self.format(statistics.median)}, [{self.format(low)}, {self.format(high)}], {seeds}"

    @property
    def choice(self) -> str:
        """Which point is the best so far, if the cell shows the best of several; else empty."""
        if not self.measured.option:
            return ""
        count = self.measured.other_runs_missing
        missing = f", {plural(count, 'run')} of others to do" if count else ""
        return f"best of {len(self.measured.cell.options)}: {self.measured.option}{missing}"

    @property
    def claimed(self) -> str:
        """The published result with the digits of the program; empty if there is none."""
        claim = self.measured.cell.claim
        if claim is None:
            return ""
        if claim.written:
            numbers = claim.written.split(" ± ")
            shown = " ± ".join(map(percent_of, numbers) if self.is_fraction else numbers)
            return f"median {shown}" if claim.median else shown
        deviation = "" if claim.deviation is None else f" ± {self.format(claim.deviation)}"
        return ("median " if claim.median else "") + self.format(claim.value) + deviation

    @property
    def came_true(self) -> bool | None:
        """Whether a predicted failure came true: fewer answers than `SOLVED` are right; None without a prediction or a
        run."""
        if not self.predicted or self.statistics is None or not self.is_fraction:
            return None
        return self.statistics.mean < SOLVED

    @property
    def lines(self) -> list[str]:
        """The result, its details, and the claim with a verdict; of a row without a recipe, the claim alone."""
        if self.measured.cell.is_published_only:
            return [f"paper {self.claimed}"] if self.claimed else [self.result]
        lines = [self.result, *filter(None, (self.choice, self.details))]
        if self.verdict is not None:
            lines.append(f"paper {self.claimed}: {self.verdict.value} {self.verdict.sign}".rstrip())
        if self.predicted:
            lines.append(f"card: fails {'' if self.came_true is None else '✓' if self.came_true else '✗'}".rstrip())
        return lines


@dataclass(frozen=True)
class RowComparison:
    """Two rows compared in a column over the `pairs` of seeds that both have: the mean of left minus right, its 95 %
    bootstrap interval, None for fewer than two pairs, and the p-value of the paired test, nan without a pair."""

    column: str
    left: str
    right: str
    pairs: int
    difference: float
    interval: tuple[float, float] | None
    p: float
    format: Callable[[float], str]

    def sentence(self) -> str:
        if not self.pairs:
            return f"{self.column}: {self.left} and {self.right} have no seed in common."
        difference = ("+" if self.difference > 0 else "") + self.format(self.difference)
        if self.interval is not None:
            difference += f" [{', '.join(map(self.format, self.interval))}]"
        return (
            f"{self.column}: {self.left} − {self.right} = {difference} over {self.pairs} pairs of seeds, "
            f"p = {self.p:.3f} (paired permutation test)."
        )


@dataclass(frozen=True)
class ResultTable:
    """The results of a table. `cells` are in the order of the rows.

    Args:
        changed: The statics that differ from the recipes. The claims do not apply to them.
        spent: The time that the finished runs have taken, if it is known."""

    name: str
    rows: tuple[TableRow, ...]
    columns: tuple[TableColumn, ...]
    cells: tuple[ResultCell, ...]
    changed: Mapping[str, str] = field(default_factory=dict)
    spent: TimeSpent | None = None
    compared: tuple[tuple[TableRow, TableRow], ...] = ()
    """pairs of rows whose difference is tested"""
    fitted: str | None = None
    """the title of the column in which power laws of the others are fitted"""
    ranked: tuple[TableRow, ...] = ()
    """rows whose places among all are told"""

    @staticmethod
    def of(
        name: str,
        rows: Sequence[TableRow],
        columns: Sequence[TableColumn],
        measured: Sequence[CellResult],
        changed: Mapping[str, str] | None = None,
        spent: TimeSpent | None = None,
        compared: Sequence[tuple[TableRow, TableRow]] = (),
        fitted: str | None = None,
    ) -> ResultTable:
        """Computes the statistics of each cell."""
        cells = tuple(map(ResultCell.of, measured))
        most_seeds = max((cell.statistics.seeds for cell in cells if cell.statistics), default=0)
        cells = tuple(replace(cell, most_seeds=most_seeds) for cell in cells)
        return ResultTable(
            name, tuple(rows), tuple(columns), cells, dict(changed or {}), spent, tuple(compared), fitted
        )

    def at(self, row: TableRow, column: TableColumn) -> ResultCell:
        return self.cells[self.rows.index(row) * len(self.columns) + self.columns.index(column)]

    def row_cells(self, row: TableRow) -> list[ResultCell]:
        """Returns the cells of a row, one for each column."""
        return [self.at(row, column) for column in self.columns]

    def text_table(self) -> TextTable:
        """Returns the headings of the rows and the lines of the cells."""
        rows = [
            [visible(heading(row)), *("\n".join(map(visible, cell.lines)) for cell in self.row_cells(row))]
            for row in self.rows
        ]
        return TextTable(visible(self.name), ["", *(visible(column.title) for column in self.columns)], rows)

    @property
    def changed_note(self) -> str:
        """The changed settings; empty if there are none."""
        if not self.changed:
            return ""
        settings = ", ".join(f"{name} = {value}" for name, value in self.changed.items())
        has_claims = any(cell.verdict is not None for cell in self.cells)
        claims = "; the claims are for the recipes without these settings" if has_claims else ""
        return f"Measured with {settings}{claims}."

    def sentences(self) -> list[str]:
        """Returns the text below the table: changed settings, how to read a cell, the compared rows, and the cost."""
        lines = [self.changed_note] if self.changed else []
        of_seeds = [cell for cell in self.cells if cell.statistics is not None and cell.statistics.seeds > 1]
        if of_seeds:
            has_fractions = any(cell.is_fraction for cell in of_seeds)
            lines.append(
                "Mean ± standard deviation over seeds; then the median, the 95 % bootstrap interval of the mean, and "
                f"how many seeds {f'reached {SOLVED:.0%}' if has_fractions else 'there are'}."
            )
        lines += [self._predictions()] * any(cell.predicted for cell in self.cells)
        reasons = dict.fromkeys(reason for cell in self.cells for reason in cell.measured.damaged.values())
        lines += [f"Not counted: {reason}." for reason in reasons]
        lines += [comparison.sentence() for comparison in self.comparisons()]
        lines += filter(None, map(self._places, self.ranked))
        lines += [_sentence(law, what, self.fitted or "") for what, law in self.fits().items()]
        return [*lines, self.spent.sentence()] if self.spent and self.spent.runs else lines

    def _predictions(self) -> str:
        marks = [cell.came_true for cell in self.cells if cell.came_true is not None]
        outcome = f" Of {len(marks)} with a result {sum(marks)} came true (✓: below {SOLVED:.0%})." if marks else ""
        return f"`card: fails`: by a theorem, no model like this one solves the task at all lengths.{outcome}"

    def _places(self, row: TableRow) -> str:
        """The place of a row in each column by its mean, among the rows that have one; empty if it has none."""
        places = []
        for column in (each for each in self.columns if not _is_cost(each)):
            metric, own = column.metric.partition(".")[2], self.at(row, column).statistics
            others = [self.at(other, column).statistics for other in self.rows]
            ranks = [rank(metric, each.mean) for each in others if each is not None]
            if own is not None:
                place = 1 + sum(each > rank(metric, own.mean) for each in ranks)
                places.append(f"{place} of {len(ranks)} in {column.title}")
        return f"{row.title} is {', '.join(places)}." if places else ""

    def comparisons(self) -> list[RowComparison]:
        """Returns the differences of the compared rows in each column, over the seeds that both have."""
        comparisons = []
        columns = [column for column in self.columns if not _is_cost(column)]
        for (left, right), column in product(self.compared, columns):
            cells = self.at(left, column), self.at(right, column)
            ours, theirs = (cell.measured.values for cell in cells)
            seeds = sorted(ours.keys() & theirs.keys())
            values = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
            paired = SeedStatistics.of([ours[seed] - theirs[seed] for seed in seeds])
            difference, interval = (paired.mean, paired.interval) if paired else (math.nan, None)
            p = paired_test(*values) if seeds else math.nan
            comparisons.append(
                RowComparison(
                    column.title, left.title, right.title, len(seeds), difference, interval, p, cells[0].format
                )
            )
        return comparisons

    def fits(self) -> dict[str, PowerLaw | None]:
        """Returns the power laws of the other columns in the column that `fitted` names, by what they fit: a loss, or
        the errors of a share."""
        sizes = next((column for column in self.columns if column.title == self.fitted), None)
        laws: dict[str, PowerLaw | None] = {}
        for column in (each for each in self.columns if sizes is not None and not _is_cost(each)):
            assert sizes is not None
            cells = [(self.at(row, sizes).statistics, self.at(row, column)) for row in self.rows]
            points = [(size.mean, cell.statistics.values) for size, cell in cells if size and cell.statistics]
            is_share = all(cell.is_fraction for _, cell in cells)
            values = [[1 - value for value in row] if is_share else row for _, row in points]
            laws["1 − " * is_share + column.title] = (
                PowerLaw.of([size for size, _ in points], values) if points else None
            )
        return laws


def _is_cost(column: TableColumn) -> bool:
    return column.metric.partition(".")[2] in COSTS


def _sentence(law: PowerLaw | None, what: str, size: str) -> str:
    if law is None:
        return f"{what}: no power law in {size}, which needs three sizes with positive numbers."
    interval = "" if law.interval is None else f" [{law.interval[0]:.2f}, {law.interval[1]:.2f}]"
    return f"{what} ≈ {law.factor:.3g} · {size}^{law.exponent:.2f}{interval}, R² = {law.r2:.2f} (power law)."


def heading(row: TableRow) -> str:
    """Returns the title of a row, and why it does not run."""
    return f"{row.title} ({row.why})" if row.why else row.title


_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*|<>[]"})
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}",
        "±": "$\\pm$", "†": "$\\dagger$", "−": "$-$", "|": "\\textbar{}", "<": "\\textless{}", ">": "\\textgreater{}",
    }
)  # fmt: skip


def terminal_table(table: ResultTable) -> RenderableType:
    """Returns the table and its sentences for rich."""
    return Group(_InParts(table.text_table()), *map(Text, table.sentences()))


_TITLE_WIDTH, _CELL_WIDTH = 20, 10  # characters, with borders


@dataclass(frozen=True)
class _InParts:
    """A table in parts of so many columns that a terminal has room for them."""

    shown: TextTable

    def __rich_console__(self, _console: object, options: ConsoleOptions) -> RenderResult:
        lines, most = [self.shown.headers, *self.shown.rows], max(1, (options.max_width - _TITLE_WIDTH) // _CELL_WIDTH)
        for start in range(1, max(2, len(self.shown.headers)), most):
            headers, *rows = ([line[0], *line[start : start + most]] for line in lines)
            part = TextTable(self.shown.title if start == 1 else "", headers, rows).terminal()
            part.show_lines = True
            yield part


def markdown(table: ResultTable) -> str:
    shown = table.text_table()
    rules = ["---", *["---:"] * (len(shown.headers) - 1)]
    rows = [
        ["<br>".join(map(_markdown_text, cell.split("\n"))) for cell in row] for row in (shown.headers, *shown.rows)
    ]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rules, *rows[1:])]
    return "\n".join([*lines, "", *map(_markdown_text, table.sentences())]).rstrip() + "\n"


def latex(table: ResultTable) -> str:
    """Returns a `table` with the rules of the booktabs package, the best mean of each column in bold, and the number of
    seeds and of missing runs in its caption."""
    lines = [
        "% \\usepackage{booktabs}",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{_latex_text(_caption(table))}}}",
    ]
    headers = " & ".join(["", *(_latex_text(column.title) for column in table.columns)])
    lines += [f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}", "\\toprule", headers + " \\\\", "\\midrule"]
    for row in table.rows:
        cells = []
        for cell in table.row_cells(row):
            claim = f" \\; ({_latex_text(cell.claimed)})" if cell.claimed else ""
            result = _latex_text(cell.result)
            mark = "$^\\dagger$" * bool(cell.predicted)
            cells.append((f"\\textbf{{{result}}}" if _is_best(table, cell) else result) + mark + claim)
        lines.append(" & ".join([_latex_text(heading(row)), *cells]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", "\\end{table}"]) + "\n"


def _caption(table: ResultTable) -> str:
    seeds = max((cell.most_seeds for cell in table.cells), default=0)
    notes = [f"{table.name}: mean ± standard deviation over {seeds} seed{'s' * (seeds != 1)}; the best mean is bold."]
    notes += ["In brackets: published results."] * any(cell.claimed for cell in table.cells)
    marked = any(cell.predicted for cell in table.cells)
    notes += ["†: by a theorem no model like this one solves the task at all lengths."] * marked
    cells = [cell.measured for cell in table.cells]
    missing = {id(plan) for cell in cells for plan in cell.cell.plans if plan.seed in cell.missing}
    return " ".join([*notes, *[f"Missing runs: {len(missing)}."] * bool(missing), table.changed_note]).strip()


def _is_best(table: ResultTable, cell: ResultCell) -> bool:
    """Whether no mean of the column is better, and another is worse."""
    metric = cell.column.metric.partition(".")[2]
    measured = [table.at(row, cell.column).statistics for row in table.rows]
    ranks = [rank(metric, each.mean) for each in measured if each is not None]
    is_larger = cell.statistics is not None and rank(metric, cell.statistics.mean) == max(ranks)
    return is_larger and min(ranks) < max(ranks) and not _is_cost(cell.column)


def json_table(table: ResultTable) -> str:
    facts = {
        "table": table.name,
        "changed": dict(table.changed),
        "cells": list(map(_record, table.cells)),
        "comparisons": [
            {name: value for name, value in vars(comparison).items() if name != "format"}
            for comparison in table.comparisons()
            if comparison.pairs
        ],
        "fits": {what: asdict(law) for what, law in table.fits().items() if law},
        "cost": asdict(table.spent) if table.spent else None,
    }  # fmt: skip
    return json_text(facts) + "\n"


TEXT_FORMATS: Mapping[str, Callable[[ResultTable], str]] = {"markdown": markdown, "latex": latex, "json": json_table}


def _record(cell: ResultCell) -> dict[str, Any]:  # Any: JSON
    statistics, claim = cell.statistics, cell.measured.cell.claim
    return {
        "row": cell.row.title,
        "column": cell.column.title,
        "recipe": cell.measured.cell.plans[0].recipe if cell.measured.cell.plans else cell.row.recipe,
        "absent": cell.row.why or None,
        "metric": cell.column.metric,
        "mean": statistics.mean if statistics else None,
        "deviation": statistics.deviation if statistics else None,
        "median": statistics.median if statistics else None,
        "interval": list(statistics.interval) if statistics and statistics.interval else None,
        "seeds": statistics.seeds if statistics else 0,
        "solved": statistics.solved() if statistics and cell.is_fraction else None,
        "best_of": cell.measured.option or None,
        "values": {str(seed): value for seed, value in cell.measured.values.items()},
        "missing": list(cell.measured.missing),
        "running": cell.measured.is_running,
        "damaged": list(cell.measured.damaged),
        "claim": claim.value if claim else None,
        "claim_median": claim.median if claim else None,
        "claim_deviation": claim.deviation if claim else None,
        "from": claim.origin if claim else None,
        "verdict": cell.verdict.value if cell.verdict else None,
        "predicted_failure": list(cell.predicted),
        "came_true": cell.came_true,
    }


def _markdown_text(text: str) -> str:
    return visible(text).translate(_MARKDOWN)


def _latex_text(text: str) -> str:
    return visible(text).translate(_LATEX)
