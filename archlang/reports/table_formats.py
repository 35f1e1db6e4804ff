"""Prints a table of results for the terminal and as Markdown, LaTeX and JSON.

Titles and names come from programs and run folders: each format shows them as they are, so they add no markup.
JSON has their exact values."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from archlang.errors.visible import json_text, visible
from archlang.reports.result_table import ResultCell, ResultTable, heading

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
    shown = table.text_table().terminal()
    shown.show_lines = True
    return Group(shown, *map(Text, table.sentences()))


def markdown(table: ResultTable) -> str:
    shown = table.text_table()
    rules = ["---", *["---:"] * (len(shown.headers) - 1)]
    rows = [
        ["<br>".join(map(_markdown_text, cell.split("\n"))) for cell in row] for row in (shown.headers, *shown.rows)
    ]
    lines = [f"| {' | '.join(row)} |" for row in (rows[0], rules, *rows[1:])]
    return "\n".join([*lines, "", *map(_markdown_text, table.sentences())]).rstrip() + "\n"


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


def json_table(table: ResultTable) -> str:
    facts = {
        "table": table.name,
        "changed": dict(table.changed),
        "cells": list(map(_record, table.cells)),
        "cost": asdict(table.spent) if table.spent else None,
    }  # fmt: skip
    return json_text(facts) + "\n"


TEXT_FORMATS: Mapping[str, Callable[[ResultTable], str]] = {"markdown": markdown, "latex": latex, "json": json_table}


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


def _markdown_text(text: str) -> str:
    return visible(text).translate(_MARKDOWN)


def _latex_text(text: str) -> str:
    return visible(text).translate(_LATEX)
