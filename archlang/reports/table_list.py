"""What tables have: their rows, columns and published numbers, the cells that can run, and what is measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.errors.names import plural
from archlang.plan.plan import TablePlan
from archlang.train.runs.required_data import missing_files, missing_user_files


@dataclass(frozen=True)
class TableSummary:
    """A table of a file.

    Args:
        waiting: By the names of data sets that must be fetched first, the number of cells that read them.
        absent: By the missing files of the user's own, the number of cells that read them.
        measured: The number of cells with a value.
        done: The number of finished runs."""

    file: str
    plan: TablePlan
    waiting: dict[str, int]
    absent: dict[str, int]
    measured: int
    done: int

    @staticmethod
    def of(file: str, plan: TablePlan, folder: Path) -> TableSummary:
        """Reads the finished runs of a table from the folder of its runs, if there is one."""
        waiting, absent = Counter[str](), Counter[str]()
        missing_by_task: dict[str, tuple[str, tuple[str, ...]]] = {}
        for cell in plan.cells:
            for first in cell.plans[:1]:
                task = repr(first.task)
                if task not in missing_by_task:
                    sets = ", ".join(dict.fromkeys(file.dataset for file in missing_files([first])))
                    missing_by_task[task] = sets, missing_user_files(first)
                sets, files = missing_by_task[task]
                waiting.update([sets] * bool(sets))
                absent.update(files)
        if not folder.is_dir():
            return TableSummary(file, plan, waiting, absent, 0, 0)
        from archlang.train.runs.table import TableRuns  # imports torch

        runs = TableRuns(plan, folder)
        measured = sum(bool(result.values) for result in runs.cell_results())
        return TableSummary(file, plan, waiting, absent, measured, len(plan.plans) - len(runs.points()))

    @property
    def runnable(self) -> int:
        """The number of cells that a recipe runs."""
        return sum(not cell.is_published_only for cell in self.plan.cells)

    @property
    def claimed(self) -> int:
        """The number of cells with a published number."""
        return sum(cell.claim is not None for cell in self.plan.cells)

    def reasons(self) -> dict[str, str]:
        """Returns by its title why each row without a recipe does not run."""
        rows = (cell.row for cell in self.plan.cells if cell.is_published_only)
        return {row.title: row.why or "published numbers only" for row in rows}

    def lines(self) -> Iterator[str]:
        """Yields what a terminal shows."""
        plan = self.plan
        origins = ", ".join(plan.origins)
        yield f"{self.file}: {plan.name}" + (f" ({origins})" if origins else "")
        yield f"  rows: {'; '.join(row.title for row in plan.rows)}"
        yield f"  columns: {'; '.join(column.title for column in plan.columns)}"
        yield (
            f"  {plural(len(plan.cells), 'cell')}: {self.runnable} can run, {len(plan.cells) - self.runnable} cannot; "
            f"{self.claimed} {'has' if self.claimed == 1 else 'have'} a published number"
        )
        for row, why in self.reasons().items():
            yield f"  cannot run: {row}: {why}"
        for sets, count in self.waiting.items():
            yield f"  {_cells_need(count)} data first: archlang data get {sets.replace(',', '')}"
        for path, count in self.absent.items():
            yield f"  {_cells_need(count)} a file that is missing: {os.path.relpath(path)}"
        yield f"  measured: {plural(self.measured, 'cell')}, by {self.done} of {plural(len(plan.plans), 'run')}"

    def record(self) -> dict[str, Any]:  # Any: JSON
        """Returns what `lines` shows as JSON."""
        return {
            "file": self.file, "table": self.plan.name, "rows": [row.title for row in self.plan.rows],
            "columns": [column.title for column in self.plan.columns], "cells": len(self.plan.cells),
            "can_run": self.runnable, "cannot_run": self.reasons(), "needs_data": self.waiting,
            "needs_files": self.absent,
            "claimed": self.claimed, "measured": self.measured, "runs": len(self.plan.plans), "done": self.done,
        }  # fmt: skip


def _cells_need(count: int) -> str:
    return f"{plural(count, 'cell')} {'needs' if count == 1 else 'need'}"


def total(summaries: Iterable[TableSummary]) -> str:
    """Returns a line about all tables."""
    summaries = list(summaries)
    cells, runnable, claimed, measured = (
        sum(counts)
        for counts in zip(
            *((len(summary.plan.cells), summary.runnable, summary.claimed, summary.measured) for summary in summaries),
            strict=True,
        )
    )
    counts = f"{plural(len(summaries), 'table')}, {plural(cells, 'cell')}"
    return f"{counts}: {runnable} can run, {claimed} with a published number, {measured} measured"
