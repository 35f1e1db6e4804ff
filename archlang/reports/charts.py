"""Line charts as SVG, drawn by matplotlib, and its theme.

The colours are those of Okabe and Ito, which are distinct for colour-blind readers; each line has its own marker."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.errors.visible import visible
from archlang.reports.pages import library_missing, write_file
from archlang.tasks.kit.metrics import LOWER_IS_BETTER

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# The colour of text and lines. A page replaces it by the colour of its own text.
INK = "#010203"
# The ink of a file, which can be read on a light and on a dark ground.
LEGIBLE_INK = "#6e7781"


@contextmanager
def themed_figure(size: tuple[float, float]) -> Iterator[Figure]:
    """Yields a figure of `size` inches in the theme. No window is opened.

    Raises:
        PageError: matplotlib is not installed."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise library_missing("charts", "matplotlib") from None
    theme: Any = {  # Any: the names of all settings
        "pdf.fonttype": 42, "svg.fonttype": "none", "svg.hashsalt": "archlang", "font.family": "sans-serif",
        "font.size": 9, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK,
        "axes.labelcolor": INK, "axes.edgecolor": INK, "axes.titlecolor": INK, "xtick.color": INK,
        "ytick.color": INK, "axes.titlelocation": "left",
        "text.parse_math": False,  # texts come from programs and data
    }  # fmt: skip
    with mpl.rc_context(theme), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # it is drawn as a box
        yield Figure(figsize=size, layout="constrained")


def figure_svg(figure: Figure, title: str = "", description: str = "", ink: str = LEGIBLE_INK) -> str:
    """Returns a figure as the content of an SVG file.

    Args:
        title: The title of the file, which browsers show.
        description: What screen readers read in place of the picture.
        ink: The colour of text and lines."""
    from markupsafe import escape

    file = io.StringIO()
    metadata = {"Date": None, **({"Title": title} if title else {})}
    figure.savefig(file, format="svg", transparent=True, metadata=metadata)
    svg = file.getvalue().replace(INK, ink)
    label = f'<svg role="img" aria-label="{escape(description)}"'
    return svg.replace("<svg", label, 1) if description else svg


def save_figure(figure: Figure, path: Path) -> None:
    """Writes a figure as a PNG or PDF file, as the suffix says.

    Raises:
        PageError: The file cannot be written."""
    content, form = io.BytesIO(), path.suffix[1:]
    figure.savefig(content, format=form, dpi=150, metadata={"CreationDate" if form == "pdf" else "Software": None})
    write_file(path, content.getvalue())


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# These splits have the same colour in every chart.
_SPLITS = ("train", "iid", "valid", "test")
_SHADE = "#7f8c9b"
_MOST_TICKS = 8
_LONGEST_NAME = 20  # characters
# A curve of as many points is smoothed, by the mean of so many points on each side; the points are behind it.
_SMOOTHED_FROM, _SMOOTHED_OVER = 40, 4
# From this ratio of the largest x to the smallest, the x axis is logarithmic.
_LOGARITHMIC_RATIO = 8


@dataclass(frozen=True)
class Curve:
    """A named curve. `deviations` are those of the points over seeds; empty without several seeds."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False
    deviations: Sequence[float] = ()


@dataclass(frozen=True)
class Chart:
    """A chart of curves.

    Args:
        shaded: The range of x that training has seen.
        percent: The y axis shows fractions as percentages.
        logarithmic: The y axis is logarithmic.
        marked: Each point is a separate measurement and has a marker.
        names: The texts of x = 0, 1, …, if they are names."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    shaded: tuple[float, float] | None = None
    percent: bool = False
    logarithmic: bool = False
    marked: bool = False
    names: tuple[str, ...] = ()

    def text_of(self, x: float) -> str:
        """Returns the beginning of the name of x, or its number."""
        named = float(x).is_integer() and 0 <= x < len(self.names)
        return visible(self.names[int(x)])[:_LONGEST_NAME] if named else f"{x:g}"


def metric_title(metric: str) -> str:
    return metric.replace("_", " ")


def metric_chart(
    metric: str,
    group: str,
    curves: Sequence[Curve],
    trained: tuple[float, float] | None,
    split: str = "",
    names: Sequence[str] = (),
) -> Chart:
    """Returns the chart of a metric by the values of a group, such as length.

    Args:
        trained: The range of values that training has seen.
        split: The split of all curves; empty if each curve is another split.
        names: The texts of the values, if they are names."""
    name = metric_title(metric)
    title = f"{name} by {group}, {split}" if split else f"{name} by {group}"
    percent = metric not in LOWER_IS_BETTER
    shaded = None if names else trained
    if any(curve.deviations for curve in curves):
        name += ", mean ± deviation over seeds"
    return Chart(title, group, name, with_points(curves), shaded, percent=percent, marked=True, names=tuple(names))


def with_points(curves: Sequence[Curve]) -> tuple[Curve, ...]:
    """Returns the curves that have points."""
    return tuple(curve for curve in curves if curve.x)


def chart_svg(chart: Chart) -> Markup:
    """Returns the chart as an SVG element for a page: in the page's text colour, with a description.

    Raises:
        PageError: matplotlib is not installed."""
    from markupsafe import Markup

    svg = charts_svg([chart], INK)
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    # A page has several charts: their ids must differ.
    prefix = re.sub(r"\W+", "_", chart.title)
    svg = re.sub(r'(id="|url\(#|href="#)', rf"\g<1>{prefix}-", svg)
    names = ", ".join(curve.name for curve in chart.curves)
    description = f"{chart.title}: {chart.y} by {chart.x}; lines: {names}"
    return Markup('<svg role="img" aria-label="{}"').format(description) + Markup(svg.removeprefix("<svg"))


def charts_svg(charts: Sequence[Chart], ink: str = LEGIBLE_INK) -> str:
    """Returns charts side by side as the content of an SVG file.

    Raises:
        PageError: matplotlib is not installed."""
    with themed_figure((6.0 * max(1, len(charts)), 3.4)) as figure:
        for axes, chart in zip(figure.subplots(1, max(1, len(charts)), squeeze=False)[0], charts, strict=False):
            draw(axes, chart)
        return figure_svg(figure, ink=ink)


def percent_axis(axes: Axes) -> None:
    """Shows fractions from 0 to 1 as percentages on the y axis."""
    from matplotlib.ticker import PercentFormatter

    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_ylim(-0.03, 1.03)


def draw(axes: Axes, chart: Chart) -> None:
    """Draws a chart."""
    for index, curve in enumerate(chart.curves):
        index = _SPLITS.index(curve.name) if curve.name in _SPLITS else index
        colour, line, y = COLOURS[index % len(COLOURS)], "--" if curve.dashed else "-", list(curve.y)
        if not chart.marked and len(y) >= _SMOOTHED_FROM:
            axes.plot(list(curve.x), y, color=colour, alpha=0.3, linewidth=0.8)
            around = (y[max(0, place - _SMOOTHED_OVER) : place + _SMOOTHED_OVER + 1] for place in range(len(y)))
            y = [sum(values) / len(values) for values in around]
        axes.errorbar(
            list(curve.x), y, yerr=list(curve.deviations) or None, capsize=2, label=curve.name, color=colour,
            marker=MARKERS[index % len(MARKERS)] if chart.marked or len(curve.x) < 2 else None,
            markersize=4, linewidth=1.6, linestyle="none" if chart.names else line,
        )  # fmt: skip
    values = sorted({x for curve in chart.curves for x in curve.x})
    logarithmic = (
        chart.marked
        and not chart.names
        and len(values) > 1
        and values[0] > 0
        and values[-1] / values[0] >= _LOGARITHMIC_RATIO
    )
    if chart.shaded is not None:
        low, high = chart.shaded
        # A margin, so that a single value has a width.
        margins = (low / 1.07, high * 1.07) if logarithmic else (low - 0.5, high + 0.5)
        axes.axvspan(*margins, color=_SHADE, alpha=0.25, linewidth=0, label="trained on")
    if chart.names:
        axes.set_xticks(values, labels=map(chart.text_of, values), rotation=30, ha="right", parse_math=False)
    elif logarithmic:
        from matplotlib.ticker import NullLocator

        axes.set_xscale("log")
        axes.xaxis.set_minor_locator(NullLocator())
        ticks = values[:: ceil(len(values) / _MOST_TICKS)]
        axes.set_xticks(ticks, labels=[f"{value:g}" for value in ticks])
    elif chart.marked and all(float(x).is_integer() for x in values):
        from matplotlib.ticker import MaxNLocator

        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title(chart.title[:1].upper() + chart.title[1:])
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    if chart.percent:
        percent_axis(axes)
    positive = [y for curve in chart.curves for y in curve.y if y > 0]
    if chart.logarithmic and positive:
        from matplotlib.ticker import NullFormatter, StrMethodFormatter

        # Their own formatters write formulas, which are off.
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        within_a_decade = max(positive) < 10 * min(positive)
        axes.yaxis.set_minor_formatter(StrMethodFormatter("{x:g}") if within_a_decade else NullFormatter())
    axes.grid(alpha=0.25, linewidth=0.6)
    if chart.curves:
        axes.legend(frameon=False)
