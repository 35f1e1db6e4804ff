"""From text to tree; every mistake of a file is found in one reading."""

from __future__ import annotations

import re
from bisect import bisect_left

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import DiagnosticLog
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.builders import DEEPEST, TreeBuilder
from archlang.syntax.comments import Comments
from archlang.syntax.outline import ITEM_WORDS
from archlang.syntax.reading import LARGEST, read
from archlang.syntax.recovery import Reader
from archlang.syntax.tree import Name, Node, Program, Setting, Use
from archlang.syntax.words import find_excess

__all__ = ["parse", "parse_setting", "parse_tolerantly", "read"]

_ITEM = re.compile(rf"^(?:{'|'.join(ITEM_WORDS)})\b", re.MULTILINE)
_VISIBLE = re.compile(r"[^\r\n]")
_PIECE = re.compile(
    rf'(?P<string>"[^"\r\n]*")|(?P<comment>#[^\r\n]*)|(?P<bracket>[()\[\]{{}}])|(?P<item>{_ITEM.pattern})', re.MULTILINE
)


def parse(source: Source) -> Program:
    """The tree of a text.

    Raises:
        ProgramError: the text has mistakes."""
    program, found = parse_tolerantly(source)
    report = DiagnosticLog()
    report.add(found)
    report.stop_at_errors()
    return program


def parse_tolerantly(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """The items of a text that were understood, and all mistakes that were found."""
    if len(source.text) > LARGEST:
        return Program(items=(), source=source), (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return Program(items=(), source=source), (excess,)
    text, comments, found = _prepared(source)
    build = TreeBuilder(source, comments)
    reader = Reader(source, text, build, "start")
    items: list[Node] = reader.read() or []
    reader.tell_brackets()
    found += reader.mistakes + build.mistakes
    places = sorted(reader.places + [mistake.span.start for mistake in found])
    sound = [item for item in items if not _broken(item, places)]
    return build.program(sound), tuple(sorted(set(found), key=lambda mistake: (mistake.span.start, mistake.code)))


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    """`name` and `text` of `--set name=text` as `name = text` of a recipe."""
    source = Source(f"--set {name}", text)
    if len(text) > LARGEST:
        return None, (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return None, (excess,)
    prepared, comments, found = _prepared(source)
    if found:
        return None, tuple(found)
    build = TreeBuilder(source, comments)
    reader = Reader(source, prepared, build, "expression", most=1)
    value = reader.read()
    found += reader.mistakes + build.mistakes
    if found:
        return None, tuple(found)
    whole = Span(source, 0, len(text))
    return Setting(path=Name(parts=tuple(name.split(".")), span=whole), value=value, span=whole), ()


def _prepared(source: Source) -> tuple[str, Comments, list[Diagnostic]]:
    """The text to parse and its comments; items with too many brackets in one another are blanked out of it."""
    comments = Comments(source.text)
    found: list[Diagnostic] = []
    text = source.text
    depth = place = item = 0
    while piece := _PIECE.search(text, place):
        place = piece.end()
        if piece["comment"]:
            comments.add(piece.start(), piece[0])
        elif piece["string"] and "\0" in piece[0]:
            zero = text.index("\0", piece.start())
            found.append(mistakes.unknown_character(Span(source, zero, zero + 1)))
        elif piece["item"]:
            depth, item = 0, piece.start()
        elif piece["bracket"]:
            depth = depth + 1 if piece[0] in "([{" else max(0, depth - 1)
            if depth > DEEPEST:
                found.append(mistakes.nested_too_deep(Span(source, piece.start(), piece.end()), DEEPEST))
                following = _ITEM.search(text, place)
                place = following.start() if following else len(text)
                text = text[:item] + _VISIBLE.sub(" ", text[item:place]) + text[place:]
    return text, comments, found


def _broken(item: Node, places: list[int]) -> bool:
    """Whether one of the places, which are sorted, lies in an item."""
    # An item whose header was not understood was given an empty name.
    named = isinstance(item, Use) or bool(getattr(item, "name", ""))
    first = bisect_left(places, item.span.start)
    return not named or (first < len(places) and places[first] <= item.span.end)
