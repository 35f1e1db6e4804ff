"""Two architectures in one picture, with the boxes marked that are in only one of them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from archlang.reports.pictures.box import Box

# Values and inputs are not marked: they follow from the boxes that compute and read them.
_MARKED = ("call", "apply", "repeat", "stack", "halting", "scan")
_Path = tuple[str, ...]


def side_by_side(before: Box, after: Box, sentences: Sequence[str]) -> Box:
    """Returns a box with both pictures and `sentences` as its notes.

    In the first picture `gone` marks boxes that the second one lacks, in the second one `new` those that the first one
    lacks. In both `changed` marks boxes whose statics, sizes or counts differ."""
    old, new = _boxes_by_path(before, ()), _boxes_by_path(after, ())
    pair = (_marked(before, new, "gone", "a:"), _marked(after, old, "new", "b:"))
    return Box("model", "model", f"{before.title} → {after.title}", notes=tuple(sentences), boxes=pair)


def _path(box: Box, parent: _Path) -> _Path:
    """Returns the titles of a box and its parents. A loop keeps its path if its kind or its count changes."""
    return (*parent, "loop" if box.kind in ("repeat", "stack", "halting") else box.title)


def _facts(box: Box) -> tuple[str, ...]:
    """Returns the lines to compare: all but those that follow from the counts of the loops around the box."""
    details = (line.partition(", ")[0] if "executed" in line else line for line in box.details if "FLOPs" not in line)
    return (box.title, *(note for note in box.notes if "FLOPs" not in note and "parameters" not in note), *details)


def _boxes_by_path(box: Box, parent: _Path) -> dict[_Path, list[Box]]:
    boxes: dict[_Path, list[Box]] = {}
    for path, child in _descendants(box, parent):
        if child.kind in _MARKED:
            boxes.setdefault(path, []).append(child)
    return boxes


def _descendants(box: Box, parent: _Path) -> Iterator[tuple[_Path, Box]]:
    for child in box.boxes:
        path = _path(child, parent)
        yield path, child
        yield from _descendants(child, path)


def _marked(picture: Box, others: Mapping[_Path, Sequence[Box]], mark: str, prefix: str) -> Box:
    """Returns the picture with marks, and with a prefix that keeps its ids distinct from those of the other one."""
    seen: Counter[_Path] = Counter()

    def change(box: Box, path: _Path) -> str:
        if box is picture or box.kind not in _MARKED:
            return ""
        seen[path] += 1
        counterparts = others.get(path, ())
        if seen[path] > len(counterparts):
            return mark
        return "changed" if len(counterparts) == 1 and _facts(counterparts[0]) != _facts(box) else ""

    def visit(box: Box, parent: _Path) -> Box:
        path = parent if box is picture else _path(box, parent)
        changed = change(box, path)
        return replace(
            box,
            id=prefix + box.id,
            notes=(f"[{changed}]", *box.notes) if changed else box.notes,
            change=changed,
            boxes=tuple(visit(child, path) for child in box.boxes),
            edges=tuple(replace(edge, source=prefix + edge.source, target=prefix + edge.target) for edge in box.edges),
        )

    return visit(picture, ())
