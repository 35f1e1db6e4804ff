"""A picture as one page that needs nothing else: it pans, zooms, folds, and can be read aloud."""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files

from archlang.pages.pictures.arrange import BEND, GAP, LANE, PADDING, RISE, SWEEPS, Placed, arrange, written
from archlang.pages.pictures.picture import Box
from archlang.pages.pictures.svg import STYLE, drawn


def print_page(box: Box) -> str:
    """The picture as an HTML file."""
    placed = arrange(box)
    script = files("archlang.pages.pictures").joinpath("page.js").read_text(encoding="utf-8")
    style = files("archlang.pages.pictures").joinpath("page.css").read_text(encoding="utf-8")
    constants = dict(padding=PADDING, gap=GAP, rise=RISE, lane=LANE, bend=BEND, sweeps=SWEEPS)
    # A `</script>` in a string would end the script: no `<` is left in it.
    facts = json.dumps({"constants": constants, "root": _facts(placed)}).replace("<", "\\u003c")
    title = escape(box.title)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            f'<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
            "script-src 'unsafe-inline'\">",
            f"<style>{STYLE}{style}</style></head>",
            f"<body><header><h1>{title}</h1>",
            "<p>"
            '<button id="fold">Fold all</button> <button id="unfold">Unfold all</button> '
            '<button id="closer" aria-label="Zoom in">+</button> '
            '<button id="farther" aria-label="Zoom out">−</button> <button id="whole">Whole</button></p>',
            '<p class="help">Click a box, or press Enter on it, to fold it. Drag to move, wheel or + and − to zoom.</p>'
            "</header>",
            f'<main id="view" tabindex="0" aria-label="The picture">{drawn(placed)}</main>',
            f"<script>const facts = {facts};\n{script}</script>",
            "</body></html>",
            "",
        ]
    )


def _facts(placed: Placed) -> dict[str, object]:
    """What the page needs to place boxes again: their rows, and the sizes of what is written on them."""
    width, height = written(placed.box)
    facts: dict[str, object] = {"id": placed.box.id, "width": width, "height": height}
    if placed.ranks is not None:
        facts |= {
            "rows": placed.ranks.rows,
            "chains": placed.ranks.chains,
            "back": [(edge.source, edge.target) for edge in placed.box.edges if edge.back],
            "inside": [_facts(one) for one in placed.inside],
        }
    return facts
