"""Pages that need nothing but themselves: one HTML file, no network."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data: blob:"


def page(title: str, parts: Sequence[str], script: str = "") -> str:
    """An HTML file of parts that are HTML already."""
    style = resource("page.css")
    head = (
        '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
    )
    scripts = f"<script>{script}</script>" if script else ""
    return f'<!doctype html>\n<html lang="en">\n{head}\n<body>\n{"".join(parts)}\n{scripts}</body></html>\n'


def resource(name: str) -> str:
    return files("archlang.pages").joinpath(name).read_text(encoding="utf-8")


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], marks: Sequence[str] = ()) -> str:
    """A table of text. `marks` are classes of its rows."""
    head = "".join(f"<th>{escape(one)}</th>" for one in headers)
    lines = [
        f"<tr{f' class={marks[i]!r}' if i < len(marks) and marks[i] else ''}>"
        + "".join(f"<td>{escape(one)}</td>" for one in row)
        + "</tr>"
        for i, row in enumerate(rows)
    ]
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
