"""Lays out documents: texts with places at which a line may end. What has room on its line has no such ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

WIDTH = 120
STEP = 4


@dataclass(frozen=True)
class Line:
    """A place at which a line may end. `flat` stands there if it does not, and `broken` if it does."""

    flat: str = " "
    broken: str = "\n"


@dataclass(frozen=True)
class Group:
    """A document that has either none or all of its line ends."""

    inner: Doc


@dataclass(frozen=True)
class Indent:
    """A document whose further lines are indented one step deeper."""

    inner: Doc


@dataclass(frozen=True)
class Fill:
    """Documents joined with commas; a line ends only before one that has no room on it."""

    parts: tuple[Doc, ...]


@dataclass(frozen=True)
class _Next:
    """A document that stands after a space, or on the next line."""

    inner: Doc


Doc = str | Line | Group | Indent | Fill | _Next | tuple["Doc", ...]
# The indent of a document, whether it has no line ends, and the document.
_Pending = tuple[int, bool, Doc]


def in_brackets(brackets: str, parts: Iterable[Doc]) -> Doc:
    """Returns a list between two brackets; if it is broken, the first bracket ends its line."""
    filled = Fill(tuple(parts))
    return Group((brackets[0], Indent((Line(""), filled)), brackets[1])) if filled.parts else brackets


def flat(doc: Doc) -> str:
    """Returns a document on one line."""
    match doc:
        case str():
            return doc
        case Line(flat=text):
            return text
        case Fill(parts=parts):
            return ", ".join(map(flat, parts))
        case tuple():
            return "".join(map(flat, doc))
    return flat(doc.inner)


def laid(doc: Doc, column: int, indent: int) -> str:
    """Returns a document that begins at a column, of which further lines have an indent."""
    written: list[str] = []
    rest: list[_Pending] = [(indent, False, doc)]
    while rest:
        indent, is_flat, doc = rest.pop()
        match doc:
            case Line():
                text = doc.flat if is_flat else doc.broken
                doc = f"\n{' ' * indent}" if text == "\n" else text
            case Group(inner=inner):
                rest.append((indent, is_flat or _has_room((indent, True, inner), rest, WIDTH - column), inner))
                continue
            case _Next(inner=inner):
                is_beside = is_flat or _has_room((indent, True, (" ", inner)), rest, WIDTH - column)
                rest += [(indent, is_flat, inner), (indent, is_beside, Line())]
                continue
            case Indent(inner=inner):
                rest.append((indent + STEP, is_flat, inner))
                continue
            case Fill() | tuple():
                rest += [(indent, is_flat, part) for part in reversed(_parts(doc))]
                continue
        written.append(doc)
        column = len(doc) - doc.rindex("\n") - 1 if "\n" in doc else column + len(doc)
    return "".join(written)


def _parts(doc: Fill | tuple[Doc, ...]) -> Sequence[Doc]:
    if isinstance(doc, tuple):
        return doc
    *before, last = ((part, ",") for part in doc.parts)
    return [each if place == 0 else _Next(each) for place, each in enumerate([*before, last[0]])]


def _has_room(first: _Pending, rest: Sequence[_Pending], room: int) -> bool:
    """Returns whether a document, and what follows it up to a place at which the line can end, has some room."""
    pending, place = [first], len(rest)
    while room >= 0:
        if not pending:
            if place == 0:
                return True
            place -= 1
            pending.append(rest[place])
        indent, is_flat, doc = pending.pop()
        match doc:
            case str():
                room -= len(doc)
            case Line() | _Next() if not is_flat:
                return True
            case Line():
                room -= len(doc.flat)
            case _Next(inner=inner):
                pending += [(indent, is_flat, inner), (indent, is_flat, " ")]
            case Group(inner=inner) | Indent(inner=inner):
                pending.append((indent, is_flat, inner))
            case Fill() | tuple():
                pending += [(indent, is_flat, part) for part in reversed(_parts(doc))]
    return False
