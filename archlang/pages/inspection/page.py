"""An inspection as one page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape

from archlang.pages.html import page, resource, table
from archlang.pages.inspection.heatmap import Heatmap, told
from archlang.pages.inspection.inspection import Inspection

# A page of more numbers than these would be slow to open; of its panels then only the first choice is kept.
_MOST = 24_000_000


def inspection_page(inspection: Inspection) -> str:
    """The HTML file: what was put in, what came out, and every panel."""
    panels, left_out = _fitting(inspection.panels)
    # A `</script>` in a string would end the script: no `<` is left in it.
    facts = json.dumps({"panels": [one.described() for one in panels]}, allow_nan=False).replace("<", "\\u003c")
    parts = [f"<h1>{escape(inspection.model)}: {escape(inspection.title)}</h1>", *_head(inspection)]
    if left_out:
        parts.append('<p class="soft">Single heads are left out: the page would be too large for a browser.</p>')
    if not panels:
        parts.append("<p>This model has no attention, gates, halting, pointers or memory to show.</p>")
    parts += [_panel(index, one) for index, one in enumerate(panels)]
    script = f"const inspection = {facts};\n{resource('inspection.js')}" if panels else ""
    return page(f"{inspection.model}: {inspection.title}", parts, script)


def _fitting(panels: Sequence[Heatmap]) -> tuple[Sequence[Heatmap], bool]:
    if sum(one.numbers for one in panels) <= _MOST:
        return panels, False
    return [one.first_choice() for one in panels], True


def _head(inspection: Inspection) -> Iterator[str]:
    for name, texts in inspection.fields.items():
        yield f'<p><span class="soft">{escape(name)}</span> <span class="tokens">{escape(" ".join(texts))}</span></p>'
    if inspection.mean_depth is not None:
        yield f'<p><span class="soft">steps taken, on average</span> {inspection.mean_depth:.2f}</p>'
    known = any(one.target is not None for one in inspection.answers)
    places = any(one.place for one in inspection.answers)
    headers = [*(["position"] if places else []), "predicted", "probability", *(["target", ""] if known else [])]
    marks = {True: "right", False: "wrong", None: ""}
    words = {True: "✓ right", False: "✗ wrong", None: ""}
    rows = [
        [
            *([one.place] if places else []), one.predicted, told(one.probability),
            *([one.target or "", words[one.right]] if known else []),
        ]
        for one in inspection.answers
    ]  # fmt: skip
    right = sum(one.right is True for one in inspection.answers)
    count = len(inspection.answers)
    summary = f"{right} of {count} right" if known else f"{count} answered"
    shown = table(headers, rows, [marks[one.right] for one in inspection.answers])
    yield f"<section><h2>Prediction</h2><p class='soft'>{summary}</p>"
    yield shown if count <= 12 else f"<details><summary>each one</summary>{shown}</details>"
    yield "</section>"


def _panel(index: int, panel: Heatmap) -> str:
    controls = []
    if len(panel.frames) > 1:
        last = len(panel.frames) - 1
        controls.append(
            f'<label>turn <input type="range" min="0" max="{last}" value="0" aria-label="turn"></label> '
            f'<span class="frame">{escape(panel.frames[0].label)}</span>'
        )
    if len(panel.choices) > 1:
        options = "".join(f"<option>{escape(one)}</option>" for one in panel.choices)
        controls.append(f'<label>show <select aria-label="show">{options}</select></label>')
    source = f'<p class="tokens">{escape(panel.source)}</p>' if panel.source else ""
    scale = (
        f'<span class="soft">{escape(panel.unit)} {told(panel.low)} '
        f'<canvas class="scale" width="120" height="12" style="display:inline" aria-hidden="true"></canvas> '
        f"{told(panel.highest)}</span>"
    )
    return (
        f'<section data-panel="{index}"><h2>{escape(panel.title)}</h2>{source}<p class="soft">{escape(panel.caption)} '
        f"Rows: {escape(panel.rows)}. Columns: {escape(panel.columns)}.</p>"
        f'<div class="controls">{"".join(controls)}{scale} <button class="save">Save as PNG</button></div>'
        '<div class="wide"><canvas class="map" tabindex="0" role="img"></canvas></div><output></output></section>'
    )
