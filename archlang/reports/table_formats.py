"""Prints a table of results for the terminal and as Markdown, LaTeX, CSV and JSON.

Titles and names come from programs and run folders: each format shows them as they are, so they neither add markup nor
formulas of a spreadsheet. JSON has their exact values."""

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from archlang.errors.visible import json_text, visible
from archlang.reports.result_table import ResultCell, ResultTable, heading
from archlang.reports.statistics import ClaimVerdict
from archlang.train.runs.progress import TextTable

_COLOURS = {
    ClaimVerdict.REPRODUCED: "green",
    ClaimVerdict.BELOW: "red",
    ClaimVerdict.ABOVE: "yellow",
    ClaimVerdict.NOT_RUN: "dim",
    ClaimVerdict.NO_GROUP: "dim",
}
# A spreadsheet computes a text that begins with one of these characters.
_FORMULA = ("=", "+", "-", "@")
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*|<>[]"})
_LATEX = str.maketrans(
    {
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
        "\\": "\\textbackslash{}", "^": "\\textasciicircum{}", "~": "\\textasciitilde{}",
        "±": "$\\pm$", "−": "$-$", "|": "\\textbar{}", "<": "\\textless{}", ">": "\\textgreater{}",
    }
)  # fmt: skip


def terminal_table(table: ResultTable) -> RenderableType:
    """Returns the table and its sentences for rich."""
    shown = Table(title=table.name, title_justify="left", show_lines=True)
    shown.add_column("")
    for column in table.columns:
        shown.add_column(column.title, justify="right")
    for row in table.rows:
        title = Text(row.title)
        if row.why:
            title.append(f"\n{row.why}", style="dim")
        shown.add_row(title, *map(_terminal_cell, table.row_cells(row)))
    return Group(shown, *(Text(sentence) for sentence in table.sentences()))


def markdown(table: ResultTable) -> str:
    lines = _markdown_lines(table.text_table())
    return "\n".join([*lines, "", *map(_markdown_text, table.sentences())]).rstrip() + "\n"


def markdown_text(table: TextTable) -> str:
    """Returns a table of text with its title."""
    return "\n".join([_markdown_text(table.title), "", *_markdown_lines(table)]) + "\n"


def _markdown_lines(table: TextTable) -> list[str]:
    rules = ["---", *["---:"] * (len(table.headers) - 1)]
    rows = [
        ["<br>".join(map(_markdown_text, cell.split("\n"))) for cell in row] for row in (table.headers, *table.rows)
    ]
    return [f"| {' | '.join(row)} |" for row in (rows[0], rules, *rows[1:])]


def latex(table: ResultTable) -> str:
    """Returns a `tabular` with the rules of the booktabs package."""
    headers = " & ".join(["", *(_latex_text(column.title) for column in table.columns)])
    lines = [f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}", "\\toprule", headers + " \\\\", "\\midrule"]
    for row in table.rows:
        cells = []
        for cell in table.row_cells(row):
            claim = f" \\; ({_latex_text(cell.claimed)})" if cell.claimed else ""
            cells.append(_latex_text(cell.result) + claim)
        lines.append(" & ".join([_latex_text(heading(row)), *cells]) + " \\\\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def csv_text(table: ResultTable) -> str:
    """Returns a line for each cell."""
    file = io.StringIO()
    records = list(map(_record, table.cells))
    writer = csv.DictWriter(file, list(records[0]) if records else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _csv_value(value) for name, value in record.items()} for record in records)
    return file.getvalue()


def json_table(table: ResultTable) -> str:
    facts = {
        "table": table.name,
        "changed": dict(table.changed),
        "cells": list(map(_record, table.cells)),
        "comparisons": [
            {
                "column": comparison.column.title, "left": comparison.left.title, "right": comparison.right.title,
                "pairs": comparison.pairs, "difference": comparison.difference, "p": comparison.probability,
            }
            for comparison in table.comparisons
            if comparison.pairs
        ],
        "cost": asdict(table.spent) if table.spent else None,
    }  # fmt: skip
    return json_text(facts) + "\n"


TEXT_FORMATS: Mapping[str, Callable[[ResultTable], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": csv_text,
    "json": json_table,
}


def _record(cell: ResultCell) -> dict[str, Any]:  # Any: JSON
    statistics, claim = cell.statistics, cell.measured.cell.claim
    return {
        "row": cell.row.title,
        "column": cell.column.title,
        "recipe": cell.row.recipe,
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
        "damaged": list(cell.measured.damaged),
        "claim": claim.value if claim else None,
        "claim_median": claim.median if claim else None,
        "claim_deviation": claim.deviation if claim else None,
        "from": claim.origin if claim else None,
        "verdict": cell.verdict.value if cell.verdict else None,
    }


def _csv_value(value: Any) -> Any:  # Any: JSON
    """Returns a value on one line: `1 2 3` for a list, `1=0.5 2=0.7` for a mapping. A text that a spreadsheet would
    compute gets an apostrophe in front, as the spreadsheet itself would write it."""
    if value is None:
        return ""
    if isinstance(value, str):
        return visible(f"'{value}" if value.lstrip().startswith(_FORMULA) else value)
    if isinstance(value, dict):
        return " ".join(f"{name}={item}" for name, item in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else value


def _terminal_cell(cell: ResultCell) -> Text:
    first, *others = cell.lines
    text = Text(first, style="bold" if cell.statistics is not None else "dim")
    for line in others:
        style = _COLOURS[cell.verdict] if cell.verdict is not None and line.startswith("paper") else "dim"
        text.append(f"\n{line}", style=f"not bold {style}")
    return text


def _markdown_text(text: str) -> str:
    return visible(text).translate(_MARKDOWN)


def _latex_text(text: str) -> str:
    return visible(text).translate(_LATEX)
