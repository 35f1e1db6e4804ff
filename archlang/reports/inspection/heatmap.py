"""A panel of an inspection: numbers in rows and columns, shown as shades."""

from __future__ import annotations

import base64
import math
import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from archlang.reports.charts import save_figure, themed_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# A number is a shade from 0 to `_LEVELS`. The last byte marks cells without a number. `inspection.js` has the same two.
_LEVELS = 254
_EMPTY = 255


@dataclass(frozen=True, eq=False)
class HeatmapFrame:
    """One position of a panel's slider.

    Args:
        rows: The label of each row.
        columns: The label of each column.
        values: [choices, rows, columns]; NaN in cells without a number."""

    label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A panel of one or more frames.

    Args:
        rows: What a row is, such as `query, position of x`.
        columns: What a column is.
        unit: What the numbers measure, for the scale.
        choices: The names of the maps of each frame, such as heads. The page offers a choice if there are several.
        low: The lower end of the scale.
        high: The upper end of the scale; if None, the largest value. The page stretches the scale when asked.
        source: The line of the program that the numbers come from."""

    title: str
    caption: str
    rows: str
    columns: str
    unit: str
    choices: tuple[str, ...]
    frames: tuple[HeatmapFrame, ...]
    low: float = 0.0
    high: float | None = None
    source: str = ""

    @property
    def highest(self) -> float:
        """The upper end of the scale, which is above the lower end."""
        return self.largest if self.high is None else self.high

    @property
    def largest(self) -> float:
        """The largest value, or a value above the lower end if no value is above it."""
        values = [float(np.nanmax(frame.values)) for frame in self.frames if np.isfinite(frame.values).any()]
        highest = max(values, default=self.low)
        return highest if highest > self.low else self.low + 1.0

    @property
    def numbers(self) -> int:
        """How many numbers the panel holds."""
        return sum(frame.values.size for frame in self.frames)

    def first_choice(self) -> Heatmap:
        """Returns the panel with its first choice only."""
        frames = tuple(replace(frame, values=frame.values[:1]) for frame in self.frames)
        return replace(self, choices=self.choices[:1], frames=frames, high=self.highest)

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        """Returns the panel as JSON. The values are shades from `low` to `high`, one byte each, in base64; the scale of
        the page ends at `scale`."""
        return {
            "title": self.title, "caption": self.caption, "source": self.source,
            "rows": self.rows, "columns": self.columns,
            "unit": self.unit, "choices": list(self.choices), "low": self.low, "high": self.largest,
            "scale": self.highest,
            "frames": [
                {"label": frame.label, "rows": list(frame.rows), "columns": list(frame.columns),
                 "shades": self._shades(frame.values)}
                for frame in self.frames
            ],
        }  # fmt: skip

    def _shades(self, values: np.ndarray) -> str:
        fractions = (values.clip(self.low) - self.low) / (self.largest - self.low)
        levels = np.rint(np.nan_to_num(fractions) * _LEVELS)
        shades = np.where(np.isnan(values), _EMPTY, levels).astype(np.uint8)
        return base64.b64encode(np.ascontiguousarray(shades).tobytes()).decode("ascii")


def format_number(value: float) -> str:
    """Formats a number of a panel.

    >>> format_number(0.12345), format_number(12.0), format_number(float("nan"))
    ('0.123', '12', '')"""
    return "" if math.isnan(value) else f"{value:.3g}"


# If a panel has more frames, only every k-th is drawn.
_MOST_FRAMES = 24
_MOST_TICKS = 40
_LONGEST_TICK = 14  # characters
_TITLE_CHARACTERS_PER_INCH = 10


def save_panels(panels: Sequence[Heatmap], folder: Path) -> list[Path]:
    """Writes each panel as a PNG file: its first choice (the maximum over heads), with one map for each frame.

    Returns:
        The paths of the files, in the order of the panels.

    Raises:
        PageError: matplotlib is not installed, or a file cannot be written."""
    paths = []
    for number, panel in enumerate(panels, 1):
        name = re.sub(r"[^\w.]+", "_", panel.title).strip("_").lower()
        paths.append(folder / f"{number:02}_{name}.png")
        _save_panel(panel, paths[-1])
    return paths


def _save_panel(panel: Heatmap, path: Path) -> None:
    frames = panel.frames[:: ceil(len(panel.frames) / _MOST_FRAMES)]
    most_columns = max(len(frame.columns) for frame in frames)
    most_rows = max(len(frame.rows) for frame in frames)
    maps_across = round(sqrt(len(frames) * max(most_rows, 6) / max(most_columns, 6)))
    maps_across = min(len(frames), max(1, maps_across))
    maps_down = ceil(len(frames) / maps_across)
    cell = 0.24 if len(frames) == 1 else 0.13  # inches
    # At least as wide as the title needs, even if the map is narrow.
    width = max(maps_across * (0.9 + cell * min(most_columns, 80)) + 0.9, 4.8)
    height = max(maps_down * (1.0 + cell * min(most_rows, 60)), 1.8)
    with themed_figure((width, height)) as figure:
        grid = figure.subplots(maps_down, maps_across, squeeze=False)
        image = None
        for index, axes in enumerate(grid.flat):
            if index >= len(frames):
                axes.set_axis_off()
                continue
            image = _draw_map(axes, panel, frames[index])
            if index % maps_across == 0:
                axes.set_ylabel(panel.rows)
            if index // maps_across == maps_down - 1 or index + maps_across >= len(frames):
                axes.set_xlabel(panel.columns)
        title = panel.title if len(panel.choices) == 1 else f"{panel.title} ({panel.choices[0]})"
        figure.suptitle(textwrap.fill(title, int(_TITLE_CHARACTERS_PER_INCH * width)))
        if image is not None:
            figure.colorbar(image, ax=grid.ravel().tolist(), label=panel.unit, shrink=0.8, pad=0.02)
        save_figure(figure, path)


def _draw_map(axes: Axes, panel: Heatmap, frame: HeatmapFrame) -> Any:  # Any: an image of matplotlib
    image = axes.imshow(
        frame.values[0], cmap="Blues", vmin=panel.low, vmax=panel.highest, aspect="auto", interpolation="nearest"
    )
    axes.set_title(frame.label)
    for axis, texts in ((axes.xaxis, frame.columns), (axes.yaxis, frame.rows)):
        step = ceil(len(texts) / _MOST_TICKS)
        axis.set_ticks(range(0, len(texts), step), labels=[text[:_LONGEST_TICK] for text in texts[::step]])
    rotated = max(map(len, frame.columns), default=0) > 2
    axes.tick_params(axis="x", rotation=90 if rotated else 0)
    axes.tick_params(length=0, labelsize=7)
    return image
