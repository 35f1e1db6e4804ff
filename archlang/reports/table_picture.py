"""The picture of a table: the mean, the deviation and the seeds of each cell, beside the claim of the paper."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.errors.visible import visible
from archlang.plan.plan import TableColumn, TableRow
from archlang.reports import charts
from archlang.reports.pages import write_file
from archlang.reports.result_table import ResultCell, ResultTable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.8  # inches
_WIDTH = 2.0, 0.4, 0.16  # inches: of the axes, for each column, and for each cell
_LEGEND_WIDTH = 2.5  # inches
_NOTE_LINE = 15  # characters per inch
_LONGEST_TITLE = 28  # characters
# Of the width of a column, the part in which its cells stand side by side, and the most for one of them. Of the width
# of a cell, the part from its mean to its claim on the right, and to its seeds on the left.
_CELLS_PART, _MOST_OF_CELL, _BESIDE = 0.8, 0.3, 0.3


def write_table_picture(table: ResultTable, path: Path) -> None:
    """Writes the picture of a table as an SVG, PNG or PDF file, with an axis for each metric.

    Raises:
        PageError: matplotlib is not installed, or the file cannot be written."""
    columns: dict[str, list[TableColumn]] = {}
    for column in table.columns:
        columns.setdefault(_metric(column), []).append(column)
    rows = [row for row in table.rows if any(cell.statistics or cell.claimed for cell in table.row_cells(row))]
    per_axes, per_column, per_cell = _WIDTH
    widths = [per_axes + len(group) * (per_column + per_cell * len(rows)) for group in columns.values()]
    with charts.themed_figure((sum(widths) + _LEGEND_WIDTH, _HEIGHT)) as figure:
        subplots = figure.subplots(1, len(widths), squeeze=False, width_ratios=widths)[0]
        for axes, (metric, group) in zip(subplots, columns.items(), strict=True):
            _draw(axes, table, metric, group, rows)
        figure.suptitle(visible(table.name), x=0.01, ha="left", fontsize="large")
        _add_legend(figure, table, rows)
        if table.changed_note:
            note = textwrap.fill(visible(table.changed_note), int(sum(widths) * _NOTE_LINE))
            figure.supxlabel(note, x=0.01, ha="left", fontsize="small")
        if path.suffix in (".png", ".pdf"):
            charts.save_figure(figure, path)
        else:
            write_file(path, charts.figure_svg(figure, visible(table.name), _description(table, rows)))


def _draw(
    axes: Axes, table: ResultTable, metric: str, columns: Sequence[TableColumn], rows: Sequence[TableRow]
) -> None:
    """Draws the cells of columns of one metric: those of a row have one colour and one marker."""
    step = min(_CELLS_PART / max(1, len(rows)), _MOST_OF_CELL)
    beside = _BESIDE * step
    for index, row in enumerate(rows):
        colour, marker = _style(index)
        cells = [table.at(row, column) for column in columns]
        places = [place + (index - (len(rows) - 1) / 2) * step for place in range(len(columns))]
        statistics = [cell.statistics for cell in cells]
        axes.errorbar(
            places,
            [each.mean if each else nan for each in statistics],
            yerr=[nan if each is None or each.deviation is None else each.deviation for each in statistics],
            color=colour, marker=marker, markersize=5, capsize=2, linewidth=1.2,
            linestyle="none",
        )  # fmt: skip
        seeds = [
            (place - beside, value)
            for place, each in zip(places, statistics, strict=True)
            if each
            for value in each.values
        ]
        axes.scatter([x for x, _ in seeds], [y for _, y in seeds], s=9, color=colour, linewidths=0)
        claims = [cell.measured.cell.claim for cell in cells]
        axes.errorbar(
            [place + beside for place in places],
            [claim.value if claim else nan for claim in claims],
            yerr=[nan if claim is None or claim.deviation is None else claim.deviation for claim in claims],
            color=colour, marker=marker, markersize=5, markerfacecolor="none", capsize=2, linewidth=0.8,
            linestyle="none",
        )  # fmt: skip
    titles = [textwrap.shorten(visible(column.title), _LONGEST_TITLE, placeholder="…") for column in columns]
    is_wide = sum(map(len, titles)) > 10 * len(titles)
    rotation, alignment = (25, "right") if is_wide else (0, "center")
    axes.set_xticks(range(len(columns)), labels=titles, rotation=rotation, ha=alignment, parse_math=False)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylabel(charts.metric_title(metric))
    if all(table.at(row, column).is_fraction for row in rows for column in columns):
        charts.percent_axis(axes)
    axes.grid(axis="y", alpha=0.25, linewidth=0.6)


def _add_legend(figure: Figure, table: ResultTable, rows: Sequence[TableRow]) -> None:
    from matplotlib.lines import Line2D

    def key(marker: str, label: str, colour: str = charts.INK, size: int = 5, fill: str | None = None) -> Line2D:
        return Line2D(
            [], [], color=colour, marker=marker, markersize=size, markerfacecolor=fill, linestyle="none", label=label
        )

    keys = []
    for index, row in enumerate(rows):
        colour, marker = _style(index)
        keys.append(key(marker, "\n".join(textwrap.wrap(visible(row.title), _LONGEST_TITLE)), colour))
    if any(cell.statistics for cell in table.cells):
        keys += [key("o", "mean ± deviation"), key("o", "a seed", size=2)]
    if any(cell.claimed for cell in table.cells):
        keys.append(key("o", "the paper", fill="none"))
    figure.legend(handles=keys, loc="outside right upper", frameon=False)


def _style(index: int) -> tuple[str, str]:
    """Returns the colour and the marker of a row, which no other row has in a table of up to 49."""
    return charts.COLOURS[index % len(charts.COLOURS)], charts.MARKERS[
        (index + index // len(charts.COLOURS)) % len(charts.MARKERS)
    ]


def _description(table: ResultTable, rows: Sequence[TableRow]) -> str:
    described = (f"{row.title}: {'; '.join(map(_described, table.row_cells(row)))}." for row in rows)
    return visible(" ".join([f"{table.name}.", *described, table.changed_note]).rstrip())


def _described(cell: ResultCell) -> str:
    paper = f", paper {cell.claimed}" if cell.claimed else ""
    return f"{cell.column.title} {cell.result}{paper}"


def _metric(column: TableColumn) -> str:
    return column.metric.partition(".")[2]
