"""A picture for the terminal: a tree with the types of what every box gives."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.pages.pictures.picture import Box


def print_tree(box: Box) -> str:
    """The picture as text, a box a line; what a loop moves stands at the start of its body."""
    heading = "  ".join([box.title, *box.notes])
    return "\n".join([heading, *_lines(box, "")]) + "\n"


def _lines(box: Box, indent: str) -> Iterator[str]:
    given: dict[str, list[str]] = {}
    values = {one.id: one for one in box.boxes if one.kind == "value"}
    for edge in box.edges:
        if edge.target in values and edge.source not in values:
            given.setdefault(edge.source, []).append(values[edge.target].title)
    shown = [one for one in box.boxes if one.kind != "value"]
    shown.sort(key=lambda one: one.kind == "result")
    feeds = {edge.target: edge.source for edge in box.edges if not edge.back}
    for index, one in enumerate(shown):
        last = index == len(shown) - 1
        text = "  ".join([_signed(one), *one.notes])
        if one.kind == "result":
            source = feeds.get(one.id, "")
            text = f"{one.title} ← {values[source].title}" if source in values else one.title
        elif one.id in given:
            text += f"  → {', '.join(given[one.id])}"
        yield f"{indent}{'└─ ' if last else '├─ '}{text}"
        yield from _lines(one, indent + ("   " if last else "│  "))


def _signed(box: Box) -> str:
    return f"{box.title} [weights {box.badge}]" if box.badge else box.title
