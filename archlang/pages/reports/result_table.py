"""A table of runs: for the terminal, and as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.table import Table
from rich.text import Text

from archlang.pages.reports.statistics import SOLVED, Summary, paired_test
from archlang.pages.reports.verdict import Verdict, judge
from archlang.plan.table import TableColumn, TableRow
from archlang.runs.table import CellResult
from archlang.tasks.kit.metrics import LOWER_IS_BETTER

FORMATS = ("terminal", "markdown", "latex", "csv", "json")
_MARKS = {Verdict.REPRODUCED: "✓", Verdict.BELOW: "↓", Verdict.ABOVE: "↑", Verdict.NOT_RUN: ""}
_COLOURS = {Verdict.REPRODUCED: "green", Verdict.BELOW: "red", Verdict.ABOVE: "yellow", Verdict.NOT_RUN: "dim"}


@dataclass(frozen=True)
class ResultCell:
    """A cell as it is shown."""

    measured: CellResult
    summary: Summary | None
    verdict: Verdict | None
    """None without a claim"""

    @staticmethod
    def of(measured: CellResult) -> ResultCell:
        summary = Summary.of(tuple(measured.values.values()))
        claim = measured.cell.claim
        return ResultCell(measured, summary, None if claim is None else judge(claim, summary))

    @property
    def row(self) -> TableRow:
        return self.measured.cell.row

    @property
    def column(self) -> TableColumn:
        return self.measured.cell.column

    @property
    def is_share(self) -> bool:
        return self.column.metric.partition(".")[2] not in LOWER_IS_BETTER

    def number(self, value: float) -> str:
        """A share in per cent, as the papers of the field print it; anything else as it is."""
        return f"{100 * value:.1f}" if self.is_share else f"{value:.2f}"

    @property
    def result(self) -> str:
        """`98.2 ± 1.3`, or what stands where nothing was measured."""
        if self.row.recipe is None:
            return "absent"
        if self.summary is None:
            return "not run" if self.measured.missing else "not measured"
        if self.summary.deviation is None:
            return f"{self.number(self.summary.mean)} (1 seed)"
        return f"{self.number(self.summary.mean)} ± {self.number(self.summary.deviation)}"

    @property
    def details(self) -> str:
        """Median, interval, and how many seeds solved it."""
        summary = self.summary
        if summary is None or summary.interval is None:
            return ""
        low, high = summary.interval
        solved = f", {summary.solved()}/{summary.seeds} solved" if self.is_share else f", {summary.seeds} seeds"
        missing = f", {len(self.measured.missing)} to run" if self.measured.missing else ""
        return f"median {self.number(summary.median)}, [{self.number(low)}, {self.number(high)}]{solved}{missing}"

    @property
    def claimed(self) -> str:
        claim = self.measured.cell.claim
        if claim is None:
            return ""
        deviation = "" if claim.deviation is None else f" ± {self.number(claim.deviation)}"
        return f"{self.number(claim.value)}{deviation}"

    @property
    def lines(self) -> list[str]:
        """The result, what it is made of, and the claim with a verdict."""
        lines = [self.result]
        if self.details:
            lines.append(self.details)
        if self.verdict is not None:
            lines.append(f"paper {self.claimed}: {self.verdict.value} {_MARKS[self.verdict]}".rstrip())
        return lines


@dataclass(frozen=True)
class RowComparison:
    """Two rows, seed by seed: their mean difference, and how likely one as large is by chance."""

    column: TableColumn
    left: TableRow
    right: TableRow
    pairs: int
    difference: float
    probability: float


@dataclass(frozen=True)
class ResultTable:
    """A table with everything that its forms print."""

    name: str
    rows: tuple[TableRow, ...]
    columns: tuple[TableColumn, ...]
    cells: tuple[ResultCell, ...]
    comparisons: tuple[RowComparison, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    """statics that are not what the recipes say, and so not what the claims are for"""

    @staticmethod
    def of(
        name: str,
        rows: Sequence[TableRow],
        columns: Sequence[TableColumn],
        measured: Sequence[CellResult],
        compared: Sequence[tuple[str, str]] = (),
        changed: Mapping[str, str] | None = None,
    ) -> ResultTable:
        """`compared` are pairs of row titles; `changed` are statics that are not what the recipes say."""
        cells = tuple(map(ResultCell.of, measured))
        table = ResultTable(name, tuple(rows), tuple(columns), cells)
        found = [one for left, right in compared for one in table._compare(left, right)]
        return ResultTable(name, table.rows, table.columns, cells, tuple(found), dict(changed or {}))

    def at(self, row: TableRow, column: TableColumn) -> ResultCell:
        return self.cells[self.rows.index(row) * len(self.columns) + self.columns.index(column)]

    @property
    def claims(self) -> bool:
        return any(cell.verdict is not None for cell in self.cells)

    def _compare(self, left: str, right: str) -> list[RowComparison]:
        first, second = (next(row for row in self.rows if row.title == title) for title in (left, right))
        found = []
        for column in self.columns:
            ours, theirs = self.at(first, column).measured.values, self.at(second, column).measured.values
            seeds = sorted(ours.keys() & theirs.keys())
            if seeds:
                pair = [ours[seed] for seed in seeds], [theirs[seed] for seed in seeds]
                difference = sum(pair[0]) / len(seeds) - sum(pair[1]) / len(seeds)
                found.append(RowComparison(column, first, second, len(seeds), difference, paired_test(*pair)))
        return found

    # Forms

    def terminal(self) -> Table:
        """A row of the terminal's table shows the result, what it is made of, and the claim with a verdict."""
        shown = Table(title=self.name, title_justify="left", show_lines=True)
        shown.add_column("")
        for column in self.columns:
            shown.add_column(column.title, justify="right")
        for row in self.rows:
            cells = [self.at(row, column) for column in self.columns]
            head = Text(row.title)
            if row.why:
                head.append(f"\n{row.why}", style="dim")
            shown.add_row(head, *map(_shown, cells))
        return shown

    def sentences(self) -> list[str]:
        """What stands below a table: how to read it, and the comparisons."""
        lines = []
        if self.changed:
            settings = ", ".join(f"{name} = {value}" for name, value in self.changed.items())
            claims = "; the claims are for the recipes as they are written" if self.claims else ""
            lines.append(f"Measured with {settings}{claims}.")
        if any(cell.summary is not None and cell.summary.seeds > 1 for cell in self.cells):
            lines.append(
                "Mean ± standard deviation over seeds; then median, 95 % bootstrap interval of the mean, and how many "
                f"seeds reached {SOLVED:.0%}."
            )
        for one in self.comparisons:
            lines.append(
                f"{one.column.title}: {one.left.title} − {one.right.title} = {100 * one.difference:+.1f} over "
                f"{one.pairs} pairs of seeds, p = {one.probability:.3f} (paired permutation test)."
            )
        return lines

    def markdown(self) -> str:
        titles = ["", *(column.title for column in self.columns)]
        lines = [_pipes(titles), _pipes(["---", *["---:"] * len(self.columns)])]
        for row in self.rows:
            cells = [self.at(row, column) for column in self.columns]
            why = f" ({row.why})" if row.why else ""
            lines.append(_pipes([row.title + why, *("<br>".join(cell.lines) for cell in cells)]))
        return "\n".join([*lines, "", *self.sentences()]).rstrip() + "\n"

    def latex(self) -> str:
        """A `tabular` with booktabs' rules."""
        lines = [f"\\begin{{tabular}}{{l{'r' * len(self.columns)}}}", "\\toprule"]
        lines += [" & ".join(["", *(_tex(column.title) for column in self.columns)]) + " \\\\", "\\midrule"]
        for row in self.rows:
            cells = []
            for column in self.columns:
                cell = self.at(row, column)
                claimed = f" \\; ({_tex(cell.claimed)})" if cell.claimed else ""
                cells.append(_tex(cell.result) + claimed)
            lines.append(" & ".join([_tex(row.title), *cells]) + " \\\\")
        return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """A line for each cell."""
        file = io.StringIO()
        writer = csv.DictWriter(file, list(self._records()[0]) if self.cells else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: "" if value is None else value for name, value in one.items()} for one in self._flat())
        return file.getvalue()

    def json(self) -> str:
        whole = {
            "table": self.name,
            "changed": dict(self.changed),
            "cells": self._records(),
            "comparisons": [
                {
                    "column": one.column.title, "left": one.left.title, "right": one.right.title, "pairs": one.pairs,
                    "difference": one.difference, "p": one.probability,
                }
                for one in self.comparisons
            ],
        }  # fmt: skip
        return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"

    def _records(self) -> list[dict[str, Any]]:  # Any: JSON
        found = []
        for cell in self.cells:
            summary, claim = cell.summary, cell.measured.cell.claim
            found.append(
                {
                    "row": cell.row.title,
                    "column": cell.column.title,
                    "recipe": cell.row.recipe,
                    "absent": cell.row.why or None,
                    "metric": cell.column.metric,
                    "mean": summary.mean if summary else None,
                    "deviation": summary.deviation if summary else None,
                    "median": summary.median if summary else None,
                    "interval": list(summary.interval) if summary and summary.interval else None,
                    "seeds": summary.seeds if summary else 0,
                    "solved": summary.solved() if summary and cell.is_share else None,
                    "values": {str(seed): value for seed, value in cell.measured.values.items()},
                    "missing": list(cell.measured.missing),
                    "claim": claim.value if claim else None,
                    "claim_deviation": claim.deviation if claim else None,
                    "from": claim.origin if claim else None,
                    "verdict": cell.verdict.value if cell.verdict else None,
                }
            )
        return found

    def _flat(self) -> list[dict[str, Any]]:  # Any: what a cell of CSV holds
        return [{name: _plain(value) for name, value in one.items()} for one in self._records()]


def _plain(value: Any) -> Any:  # Any: JSON
    """A value on one line: `1 2 3`, `1=0.5 2=0.7`."""
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _shown(cell: ResultCell) -> Text:
    first, *others = cell.lines
    text = Text(first, style="bold" if cell.summary is not None else "dim")
    for line in others:
        style = _COLOURS[cell.verdict] if cell.verdict is not None and line.startswith("paper") else "dim"
        text.append(f"\n{line}", style=f"not bold {style}")
    return text


def _pipes(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _tex(text: str) -> str:
    for sign in "\\&%$#_{}":
        text = text.replace(sign, f"\\{sign}" if sign != "\\" else "\\textbackslash ")
    return text.replace("±", "$\\pm$").replace("−", "$-$")
