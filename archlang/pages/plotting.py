"""The matplotlib theme of charts and heatmaps."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.pages.files import write_file
from archlang.pages.mistakes import library_missing

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colour of text and lines. A page replaces it by the colour of its own text.
INK = "#010203"


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
        "svg.fonttype": "none", "svg.hashsalt": "archlang", "font.family": "sans-serif", "font.size": 9,
        "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK,
        "axes.labelcolor": INK, "axes.edgecolor": INK, "axes.titlecolor": INK, "xtick.color": INK,
        "ytick.color": INK, "axes.titlelocation": "left",
        "text.parse_math": False,  # texts come from programs and data
    }  # fmt: skip
    with mpl.rc_context(theme), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # it is drawn as a box
        yield Figure(figsize=size, layout="constrained")


def save_png(figure: Figure, path: Path) -> None:
    """Writes a figure as a PNG file.

    Raises:
        PageError: The file cannot be written."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": None})
    write_file(path, content.getvalue())
