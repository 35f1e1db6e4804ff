"""Charts, by matplotlib: it makes SVG that stands in a page, and PNG for papers, without a script or a network.

One small theme for all: the colours of Okabe and Ito, which those who see colours otherwise can tell apart, and each
line with a marker of its own."""

from __future__ import annotations

import io
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.files.os_errors import os_errors_as
from archlang.pages.inspection.heatmap import Frame, Heatmap
from archlang.record.mistakes import RunError, not_written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# These have the same colour in every chart.
_SPLITS = ("train", "iid", "valid", "test")
# Text and lines of a chart take this colour, which a page replaces by that of its text.
_INK = "#010203"
_SHADES = "#7f8c9b"
# A figure of a panel has at most so many frames; between them every k-th is left out.
_MOST_FRAMES = 24
_MOST_TICKS = 40
# So many letters of a title stand on an inch.
_LETTERS = 10
# Where the largest x is so many times the smallest, lengths say, each doubling gets the same room.
_WIDE = 8


@dataclass(frozen=True)
class Line:
    """A curve: points with a name."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


@dataclass(frozen=True)
class Chart:
    """A chart of lines. `shaded` are values of x that training has seen; a `percent` axis shows shares."""

    title: str
    x: str
    y: str
    lines: tuple[Line, ...]
    shaded: tuple[float, float] | None = None
    percent: bool = False
    logarithmic: bool = False
    marked: bool = False
    """each point is a measurement of its own, and gets a marker"""


def chart_svg(chart: Chart) -> str:
    """The chart as SVG for a page, in the page's text colour, with a description for those who do not see it."""
    with _drawing((6.0, 3.4)) as figure:
        _draw(figure.subplots(), chart)
        file = io.StringIO()
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    svg = file.getvalue()
    svg = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    # Several charts stand in one page: their ids must differ.
    mark = re.sub(r"\W+", "_", chart.title)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{mark}-", svg)
    names = ", ".join(line.name for line in chart.lines)
    told = escape(f"{chart.title}: {chart.y} by {chart.x}; lines: {names}", quote=True)
    return svg.replace("<svg", f'<svg role="img" aria-label="{told}"', 1)


def chart_png(chart: Chart, place: Path) -> None:
    """The chart as a PNG file."""
    with _drawing((6.0, 3.4)) as figure:
        _draw(figure.subplots(), chart)
        _save(figure, place)


def _draw(axes: Axes, chart: Chart) -> None:
    for index, line in enumerate(chart.lines):
        index = _SPLITS.index(line.name) if line.name in _SPLITS else index
        colour, marker = _COLOURS[index % len(_COLOURS)], _MARKERS[index % len(_MARKERS)]
        axes.plot(
            list(line.x), list(line.y), label=line.name, color=_INK if colour == "#000000" else colour,
            marker=marker if chart.marked or len(line.x) < 2 else None, markersize=4, linewidth=1.6,
            linestyle="--" if line.dashed else "-",
        )  # fmt: skip
    places = sorted({x for line in chart.lines for x in line.x})
    wide = chart.marked and len(places) > 1 and places[0] > 0 and places[-1] / places[0] >= _WIDE
    if chart.shaded is not None:
        low, high = chart.shaded
        # A lone value has a width, too.
        margins = (low / 1.07, high * 1.07) if wide else (low - 0.5, high + 0.5)
        axes.axvspan(*margins, color=_SHADES, alpha=0.25, linewidth=0, label="trained on")
    if wide:
        from matplotlib.ticker import NullLocator

        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        every = ceil(len(places) / 8)
        axes.set_xticks(places[::every], labels=[f"{place:g}" for place in places[::every]])
    axes.set_title(chart.title[:1].upper() + chart.title[1:])
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.percent:
        from matplotlib.ticker import PercentFormatter

        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.set_ylim(-0.03, 1.03)
    if chart.marked and not wide and all(float(x).is_integer() for x in places):
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if chart.logarithmic and any(y > 0 for line in chart.lines for y in line.y):
        axes.set_yscale("log")
    axes.grid(alpha=0.25, linewidth=0.6)
    if len(chart.lines) > 1 or chart.shaded is not None:
        axes.legend(frameon=False)


# Panels of an inspection


def save_panels(panels: Sequence[Heatmap], folder: Path) -> list[Path]:
    """Each panel as a PNG: its first choice (the largest of all heads), a map for each turn."""
    made = []
    for number, panel in enumerate(panels, 1):
        name = re.sub(r"[^\w.]+", "_", panel.title).strip("_").lower()
        place = folder / f"{number:02}_{name}.png"
        save_panel(panel, place)
        made.append(place)
    return made


def save_panel(panel: Heatmap, place: Path) -> None:
    """A panel as a PNG file.

    Raises:
        RunError: matplotlib is not installed, or the file cannot be written."""
    frames = panel.frames[:: ceil(len(panel.frames) / _MOST_FRAMES)]
    wide = max(len(one.columns) for one in frames)
    tall = max(len(one.rows) for one in frames)
    across = min(len(frames), max(1, round(sqrt(len(frames) * max(tall, 6) / max(wide, 6)))))
    down = ceil(len(frames) / across)
    alone = len(frames) == 1
    cell = 0.24 if alone else 0.13
    # Room for the titles: a narrow map has a wide name.
    size = (max(across * (0.9 + cell * min(wide, 80)) + 0.9, 4.8), max(down * (1.0 + cell * min(tall, 60)), 1.8))
    with _drawing(size) as figure:
        grid = figure.subplots(down, across, squeeze=False)
        image = None
        for index, axes in enumerate(grid.flat):
            if index >= len(frames):
                axes.set_axis_off()
                continue
            image = _map(axes, panel, frames[index])
            if index % across == 0:
                axes.set_ylabel(panel.rows)
            if index // across == down - 1 or index + across >= len(frames):
                axes.set_xlabel(panel.columns)
        title = panel.title if len(panel.choices) == 1 else f"{panel.title} ({panel.choices[0]})"
        figure.suptitle(textwrap.fill(title, int(_LETTERS * size[0])))
        if image is not None:
            figure.colorbar(image, ax=grid.ravel().tolist(), label=panel.unit, shrink=0.8, pad=0.02)
        _save(figure, place)


def _map(axes: Axes, panel: Heatmap, frame: Frame) -> Any:  # Any: an image of matplotlib
    image = axes.imshow(
        frame.values[0], cmap="Blues", vmin=panel.low, vmax=panel.highest, aspect="auto", interpolation="nearest"
    )
    axes.set_title(frame.label)
    for axis, texts in ((axes.xaxis, frame.columns), (axes.yaxis, frame.rows)):
        every = ceil(len(texts) / _MOST_TICKS)
        axis.set_ticks(range(0, len(texts), every), labels=[text[:14] for text in texts[::every]])
    upright = max(map(len, frame.columns), default=0) > 2
    axes.tick_params(axis="x", rotation=90 if upright else 0)
    axes.tick_params(length=0, labelsize=7)
    return image


@contextmanager
def _drawing(size: tuple[float, float]) -> Iterator[Figure]:
    """A figure in the theme, that no window is opened for.

    Raises:
        RunError: matplotlib is not installed."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise RunError(
            "charts are drawn by matplotlib, which is not installed", "run `pip install 'archlang[view]'`"
        ) from None
    theme: Any = {  # Any: the names of all settings
        "svg.fonttype": "none", "svg.hashsalt": "archlang", "font.family": "sans-serif", "font.size": 9,
        "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": _INK,
        "axes.labelcolor": _INK, "axes.edgecolor": _INK, "axes.titlecolor": _INK, "xtick.color": _INK,
        "ytick.color": _INK, "axes.titlelocation": "left",
    }  # fmt: skip
    with mpl.rc_context(theme):
        yield Figure(figsize=size, layout="constrained")


def _save(figure: Figure, place: Path) -> None:
    with os_errors_as(not_written, place):
        place.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(place, dpi=150, metadata={"Software": None})
