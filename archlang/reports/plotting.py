"""The matplotlib theme of charts and heatmaps."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from archlang.reports.files import write_file
from archlang.reports.mistakes import library_missing

if TYPE_CHECKING:
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
        "svg.fonttype": "none", "svg.hashsalt": "archlang", "font.family": "sans-serif", "font.size": 9,
        "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "text.color": INK,
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


def save_png(figure: Figure, path: Path) -> None:
    """Writes a figure as a PNG file.

    Raises:
        PageError: The file cannot be written."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": None})
    write_file(path, content.getvalue())
