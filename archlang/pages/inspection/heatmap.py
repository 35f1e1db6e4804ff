"""Numbers in rows and columns, shown as shades: what every panel of an inspection is."""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

# A number is a shade of so many; the last byte stands for nothing.
_LEVELS = 254
_NOTHING = 255


@dataclass(frozen=True, eq=False)
class Frame:
    """One position of a panel's slider. `values` are [choices, rows, columns]; nan where there is nothing."""

    label: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Heatmap:
    """A panel: one or several frames, each with the same `choices` (heads, pointers; a lone one is not offered)."""

    title: str
    caption: str
    rows: str
    """what a row is"""
    columns: str
    unit: str
    """what is counted, for the scale"""
    choices: tuple[str, ...]
    frames: tuple[Frame, ...]
    low: float = 0.0
    high: float | None = None
    """the ends of the scale; the largest value if None"""
    source: str = ""
    """the line of the program that it comes from"""

    @property
    def highest(self) -> float:
        if self.high is not None:
            return self.high
        values = [float(np.nanmax(one.values)) for one in self.frames if np.isfinite(one.values).any()]
        highest = max(values, default=self.low)
        return highest if highest > self.low else self.low + 1.0

    @property
    def numbers(self) -> int:
        return sum(one.values.size for one in self.frames)

    def first_choice(self) -> Heatmap:
        """The panel with its first choice only."""
        frames = tuple(Frame(one.label, one.rows, one.columns, one.values[:1]) for one in self.frames)
        return replace(self, choices=self.choices[:1], frames=frames, high=self.highest)

    def described(self) -> dict[str, Any]:  # Any: JSON
        """All of it as JSON; values as shades, a byte each."""
        return {
            "title": self.title, "caption": self.caption, "source": self.source,
            "rows": self.rows, "columns": self.columns,
            "unit": self.unit, "choices": list(self.choices), "low": self.low, "high": self.highest,
            "frames": [
                {"label": one.label, "rows": list(one.rows), "columns": list(one.columns),
                 "shades": self._shades(one.values)}
                for one in self.frames
            ],
        }  # fmt: skip

    def _shades(self, values: np.ndarray) -> str:
        share = (np.clip(values, self.low, self.highest) - self.low) / (self.highest - self.low)
        shades = np.where(np.isnan(values), _NOTHING, np.rint(np.nan_to_num(share) * _LEVELS)).astype(np.uint8)
        return base64.b64encode(np.ascontiguousarray(shades).tobytes()).decode("ascii")


def told(value: float) -> str:
    """A number of a panel as text.

    >>> told(0.12345), told(12.0), told(float("nan"))
    ('0.123', '12', '')"""
    return "" if math.isnan(value) else f"{value:.3g}"
