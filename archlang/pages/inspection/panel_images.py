"""The heatmaps of an inspection as PNG files."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from math import ceil, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.pages.inspection.heatmap import Heatmap, HeatmapFrame
from archlang.pages.plotting import save_png, themed_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        save_png(figure, path)


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
