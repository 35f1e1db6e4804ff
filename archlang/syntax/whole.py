"""Parses a text as a whole, with error recovery: a mistake can reach beyond its item."""

import re
from bisect import bisect_right
from dataclasses import replace
from itertools import takewhile

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.braces import has_odd_brace, repair_braces
from archlang.syntax.builders import DEEPEST, FirstMistake, TreeBuilder
from archlang.syntax.character_mistakes import unknown_character
from archlang.syntax.comments import Comments
from archlang.syntax.outline import ITEM_WORDS
from archlang.syntax.recovery import MOST_READ, Reader
from archlang.syntax.substitutes import Substitutes
from archlang.syntax.tree import Definition, Item, Missing, Program, Recipe, Table

_ITEM = re.compile(rf"^(?:{'|'.join(ITEM_WORDS)})\b", re.MULTILINE)
_VISIBLE = re.compile(r"[^\r\n]")
# What is empty, or only comments.
_EMPTY = re.compile(r"(?:\s|#[^\r\n]*)*+")
_LINE = re.compile(r"^(?P<indent>[ \t]*+)(?P<code>[^\s#][^\r\n]*+)", re.MULTILINE)
_PIECE = re.compile(
    rf'(?P<string>"[^"\r\n]*")|(?P<comment>#[^\r\n]*)|(?P<bracket>[()\[\]{{}}])|(?P<item>{_ITEM.pattern})', re.MULTILINE
)


def parse_sound(source: Source) -> Program | None:
    """Parses a text; returns None at its first mistake."""
    text, comments, diagnostics = prepare(source)
    if diagnostics:
        return None
    try:
        builder, reader, items = _read(source, text, comments, limit=1)
    except FirstMistake:
        return None
    return None if reader.mistakes else builder.program(items)


def parse_whole(source: Source, end: int | None = None) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Parses a text; returns its items, with `Missing` in place of lines that cannot be read, and the diagnostics. What
    follows `end` only shows where mistakes are."""
    text, comments, diagnostics = prepare(source)
    substitutes = Substitutes.of(source, text, end)
    text, added = substitutes.text, frozenset(substitutes.values)
    diagnostics += substitutes.mistakes
    builder, reader, items = _read(source, text, comments, added=added)
    first = reader.mistakes
    repaired = repair_braces(source, text[:end], frozenset(mistake.span.line for mistake in first))
    if first and repaired.text != text[:end]:
        _, comments, _ = prepare(source)  # the first reading has taken the comments
        text = repaired.text + text[len(repaired.text) :]
        builder, reader, items = _read(source, text, comments, added=added.union(repaired.conditions))
    reader.report_brackets()
    diagnostics += repaired.mistakes_of(first, reader.mistakes) + builder.mistakes
    offsets = sorted(reader.offsets + [diagnostic.span.start for diagnostic in diagnostics])
    if not has_odd_brace(source.text[:end]):  # else the lines after a `}` may be those of an item without a header
        items = [_with_stray_lines(item, source, offsets) for item in items]
    readable_items = [replace(item, is_whole=False) if _is_broken(item, offsets) else item for item in items]
    ordered = sorted(set(diagnostics), key=lambda diagnostic: (diagnostic.span.start, diagnostic.code))
    return builder.program(readable_items), tuple(ordered)


def _read(
    source: Source, text: str, comments: Comments, limit: int = MOST_READ, added: frozenset[int] = frozenset()
) -> tuple[TreeBuilder, Reader, list[Item]]:
    builder = TreeBuilder(source, comments, added, stops=limit == 1)
    reader = Reader(source, text, builder, "start", limit)
    return builder, reader, reader.read() or []


def prepare(source: Source) -> tuple[str, Comments, list[Diagnostic]]:
    """Returns the text to parse, in which spaces replace items with too deep brackets, and the comments."""
    comments = Comments(source.text)
    diagnostics: list[Diagnostic] = []
    text = source.text
    depth = place = item = 0
    while piece := _PIECE.search(text, place):
        place = piece.end()
        if piece["comment"]:
            comments.add(piece.start(), piece[0])
        elif piece["string"] and "\0" in piece[0]:
            zero = text.index("\0", piece.start())
            diagnostics.append(unknown_character(Span(source, zero, zero + 1)))
        elif piece["item"]:
            depth, item = 0, piece.start()
        elif piece["bracket"]:
            depth = depth + 1 if piece[0] in "([{" else max(0, depth - 1)
            if depth > DEEPEST:
                diagnostics.append(mistakes.nested_too_deep(Span(source, piece.start(), piece.end()), DEEPEST))
                following = _ITEM.search(text, place)
                place = following.start() if following else len(text)
                text = text[:item] + _VISIBLE.sub(" ", text[item:place]) + text[place:]
    return text, comments, diagnostics


def _with_stray_lines(item: Item, source: Source, offsets: list[int]) -> Item:
    """Returns an item with the indented lines after its `}` that are mistakes: they may belong to it."""
    first = _EMPTY.match(source.text, item.span.end)
    if first is None or first.end() not in offsets or not first[0].endswith((" ", "\t")):
        return item
    start, _ = source.line_bounds(source.position(first.end())[0])
    lines = takewhile(lambda line: line["indent"], _LINE.finditer(source.text, start))
    stray = tuple(Missing(span=Span(source, line.start("code"), line.end("code"))) for line in lines)
    if isinstance(item, Definition):
        body = replace(item.body, statements=(*item.body.statements, *stray))
        return replace(item, body=body, is_whole=False)
    if isinstance(item, Recipe | Table):
        return replace(item, parts=(*item.parts, *stray), is_whole=False)  # type: ignore[arg-type]  # of either kind
    return item


def _is_broken(item: Item, offsets: list[int]) -> bool:
    """Returns whether an item contains one of the sorted offsets of mistakes."""
    if not getattr(item, "name", "use"):
        return True
    first = bisect_right(offsets, item.span.start)  # a mistake at its first word is that of the text before it
    return first < len(offsets) and offsets[first] <= item.span.end
