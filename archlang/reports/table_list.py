"""What tables have: their rows, columns and published numbers, the cells that can run, and what is measured."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from archlang.errors.names import plural
from archlang.plan.plan import TablePlan
from archlang.plan.required_data import missing_files, missing_user_files

Summary = Mapping[str, Any]  # Any: JSON


def summarize_table(file: str, plan: TablePlan, folder: Path, also: Path | None) -> Summary:
    """Returns what a table of a file has, as JSON. Reads its finished runs from the folder of its runs, if there is
    one, and from `also`, as `TableRuns` does."""
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
    measured = done = 0
    if folder.is_dir() or also is not None:
        from archlang.train.runs.table import TableRuns  # imports torch

        runs = TableRuns(plan, folder, also=also)
        measured = sum(bool(result.values) for result in runs.cell_results())
        done = len(plan.plans) - len(runs.points())
    without_recipe = [cell.row for cell in plan.cells if cell.is_published_only]
    return {
        "file": file, "table": plan.name, "origins": plan.origins, "rows": [row.title for row in plan.rows],
        "columns": [column.title for column in plan.columns], "cells": len(plan.cells),
        "can_run": len(plan.cells) - len(without_recipe),
        "cannot_run": {row.title: row.why or "published numbers only" for row in without_recipe},
        "needs_data": waiting, "needs_files": absent, "claimed": sum(cell.claim is not None for cell in plan.cells),
        "measured": measured, "runs": len(plan.plans), "done": done,
    }  # fmt: skip


def summary_lines(table: Summary) -> Iterator[str]:
    """Yields what a terminal shows of a table."""
    origins = f" ({', '.join(table['origins'])})" if table["origins"] else ""
    yield f"{table['file']}: {table['table']}{origins}"
    yield f"  rows: {'; '.join(table['rows'])}"
    yield f"  columns: {'; '.join(table['columns'])}"
    cells, can_run, claimed = table["cells"], table["can_run"], table["claimed"]
    verb = "has" if claimed == 1 else "have"
    yield f"  {plural(cells, 'cell')}: {can_run} can run, {cells - can_run} cannot; {claimed} {verb} a published number"
    for row, why in table["cannot_run"].items():
        yield f"  cannot run: {row}: {why}"
    for sets, count in table["needs_data"].items():
        yield f"  {_cells_need(count)} data first: archlang data get {sets.replace(',', '')}"
    for path, count in table["needs_files"].items():
        yield f"  {_cells_need(count)} a file that is missing: {os.path.relpath(path)}"
    yield f"  measured: {plural(table['measured'], 'cell')}, by {table['done']} of {plural(table['runs'], 'run')}"


def _cells_need(count: int) -> str:
    return f"{plural(count, 'cell')} {'needs' if count == 1 else 'need'}"


def total(tables: Sequence[Summary]) -> str:
    """Returns a line about all tables."""
    cells, can_run, claimed, measured = (
        sum(table[key] for table in tables) for key in ("cells", "can_run", "claimed", "measured")
    )
    counts = f"{plural(len(tables), 'table')}, {plural(cells, 'cell')}"
    return f"{counts}: {can_run} can run, {claimed} with a published number, {measured} measured"
