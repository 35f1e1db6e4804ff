"""A picture as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from archlang.pages.pictures.arrange import LINE, PADDING, Placed, arrange, lines
from archlang.pages.pictures.picture import Box

STYLE = """
.picture { --ink: #1b1f24; --soft: #57606a; --ground: #ffffff; --box: #f6f8fa; --inner: #ffffff; --line: #8c959f;
  --loop: #0072b2; --gate: #b35900; --mark: #d55e00; background: var(--ground); }
@media (prefers-color-scheme: dark) { .picture { --ink: #e6edf3; --soft: #9aa5b1; --ground: #0d1117; --box: #161b22;
  --inner: #0d1117; --line: #6e7681; --loop: #56b4e9; --gate: #e69f00; --mark: #ffb000; } }
@media print { .picture { --ink: #000; --soft: #333; --ground: #fff; --box: #fff; --inner: #fff; --line: #555;
  --loop: #0072b2; --gate: #b35900; } }
.picture text { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: var(--ink); }
.picture text.note { fill: var(--soft); }
.picture text.source { fill: var(--soft); font-style: italic; }
.picture text.title { font-weight: 600; }
.picture .value text { font-weight: 400; fill: var(--soft); }
.picture rect { fill: var(--box); stroke: var(--line); }
.picture .value > rect { fill: var(--ground); stroke: none; }
.picture .loop > rect { fill: var(--inner); stroke: var(--loop); stroke-width: 2; }
.picture .state > rect, .picture .memory > rect, .picture .result > rect { stroke: var(--loop); stroke-dasharray: 4 3; }
.picture .shared > rect { stroke: var(--gate); stroke-width: 2; }
.picture .new > rect { stroke: var(--loop); stroke-width: 3; }
.picture .gone > rect { stroke: var(--mark); stroke-width: 3; stroke-dasharray: 2 3; }
.picture .changed > rect { stroke: var(--gate); stroke-width: 3; stroke-dasharray: 8 3; }
.picture .apply > rect, .picture .model > rect { fill: var(--inner); }
.picture path { fill: none; stroke: var(--line); stroke-width: 1.5; }
.picture path.back { stroke: var(--loop); stroke-dasharray: 5 3; }
.picture marker path { fill: var(--line); stroke: none; }
"""


def print_svg(box: Box) -> str:
    """The picture as an SVG file."""
    placed = arrange(box)
    return drawn(placed, f"<style>{STYLE}</style>") + "\n"


def drawn(placed: Placed, head: str = "", attributes: str = "") -> str:
    """An `svg` element with the picture."""
    width, height = placed.width + 2 * PADDING, placed.height + 2 * PADDING
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="picture" role="img" width="{width:.0f}" '
            f'height="{height:.0f}" viewBox="{-PADDING:.0f} {-PADDING:.0f} {width:.0f} {height:.0f}" '
            f'aria-label="{escape(placed.box.title)}"{attributes}>',
            head,
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>',
            *_group(placed),
            "</svg>",
        ]
    )


def _group(placed: Placed) -> Iterator[str]:
    box = placed.box
    classes = [box.kind]
    if box.kind in ("repeat", "stack", "halting", "scan"):
        classes.append("loop")
    if box.badge:
        classes.append("shared")
    if box.mark:
        classes.append(box.mark)
    opens = ' role="button" tabindex="0" aria-expanded="true"' if box.boxes and box.kind != "model" else ' role="group"'
    yield (
        f'<g class="{" ".join(classes)}" data-id="{escape(box.id)}"'
        f' transform="translate({placed.x:.1f} {placed.y:.1f})"'
        f' aria-label="{escape(". ".join(filter(None, (box.title, *box.notes, box.place))))}"{opens}>'
    )
    radius = 3 if box.kind == "value" else 6
    yield f'<rect width="{placed.width:.1f}" height="{placed.height:.1f}" rx="{radius}"/>'
    if box.place:
        yield f"<title>{escape(f'{box.place}  {box.source}')}</title>"
    texts = lines(box)
    padding = PADDING if box.kind != "value" else 3.0
    for number, text in enumerate(texts):
        kind = "title" if number == 0 else "source" if box.source and number == len(texts) - 1 else "note"
        yield f'<text class="{kind}" x="{padding:.0f}" y="{padding + LINE * number + 12:.0f}">{escape(text)}</text>'
    if box.boxes:
        yield '<g class="inside">'
        for route in placed.routes:
            path = "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in route.points)
            kind = ' class="back"' if route.back else ""
            ends = f'data-from="{escape(route.source)}" data-to="{escape(route.target)}"'
            arrow = "" if route.target.endswith(":value") else ' marker-end="url(#arrow)"'
            yield f'<path{kind} {ends}{arrow} d="{path}"/>'
        for one in placed.inside:
            yield from _group(one)
        yield "</g>"
    yield "</g>"
