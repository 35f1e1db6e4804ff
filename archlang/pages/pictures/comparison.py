"""Two architectures in one picture, side by side, with what is in only one of them marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from archlang.pages.pictures.picture import Box

# Values and inputs follow from the boxes that make and read them.
_MARKED = ("call", "apply", "repeat", "stack", "halting", "scan")
_Key = tuple[str, ...]


def beside(before: Box, after: Box, sentences: Sequence[str]) -> Box:
    """A box with both pictures. In the first what is gone is marked, in the second what is new, in both what has other
    statics, sizes or counts."""
    old, new = Counter(_keys(before, ())), Counter(_keys(after, ()))
    said = {key: _told(box) for key, box in _keyed(before, ())}
    other = {key: _told(box) for key, box in _keyed(after, ())}
    pair = (
        _marked(before, (), new, other, "gone", "a:"),
        _marked(after, (), old, said, "new", "b:"),
    )
    title = f"{before.title} → {after.title}"
    return Box("model", "model", title, tuple(sentences), boxes=pair)


def _key(box: Box, outer: _Key) -> _Key:
    """What a box is called, and those around it; a loop is the same one with another count."""
    return (*outer, box.title.split(" ")[0] if box.kind in ("repeat", "stack", "halting") else box.title)


def _told(box: Box) -> tuple[str, ...]:
    """What a box says of itself. How often it runs is said of the loop around it."""
    return (
        box.title,
        *(note.partition(", ")[0] if "executed" in note else note for note in box.notes if "FLOPs" not in note),
    )


def _keyed(box: Box, outer: _Key) -> Iterator[tuple[_Key, Box]]:
    for one in box.boxes:
        key = _key(one, outer)
        if one.kind in _MARKED:
            yield key, one
        yield from _keyed(one, key)


def _keys(box: Box, outer: _Key) -> Iterator[_Key]:
    for key, _ in _keyed(box, outer):
        yield key


def _marked(
    box: Box, outer: _Key, there: Counter[_Key], said: dict[_Key, tuple[str, ...]], mark: str, side: str
) -> Box:
    """The box with marks, and ids that no box of the other side has."""
    left = Counter(there)

    def visit(one: Box, around: _Key) -> Box:
        key = _key(one, around) if one is not box else around
        found = ""
        if one is not box and one.kind in _MARKED:
            left[key] -= 1
            found = mark if left[key] < 0 else "changed" if said[key] != _told(one) and there[key] == 1 else ""
        inside = tuple(visit(part, key) for part in one.boxes)
        edges = tuple(replace(edge, source=side + edge.source, target=side + edge.target) for edge in one.edges)
        notes = (f"[{found}]", *one.notes) if found else one.notes
        return replace(one, id=side + one.id, notes=notes, mark=found, boxes=inside, edges=edges)

    return visit(box, outer)
