"""A panel of an inspection: numbers in rows and columns, shown as shades."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

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
