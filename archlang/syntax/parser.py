"""Parses text to a tree, and finds all syntax mistakes of a file in one pass."""

import re
from bisect import bisect_right
from dataclasses import replace

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import DiagnosticLog
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.braces import repair_braces
from archlang.syntax.builders import DEEPEST, TreeBuilder
from archlang.syntax.comments import Comments
from archlang.syntax.outline import ITEM_WORDS
from archlang.syntax.reading import LARGEST, read
from archlang.syntax.recovery import Reader
from archlang.syntax.tree import Item, Name, Program, Setting
from archlang.syntax.words import find_excess

__all__ = ["parse", "parse_setting", "parse_tolerantly", "read"]

_ITEM = re.compile(rf"^(?:{'|'.join(ITEM_WORDS)})\b", re.MULTILINE)
_VISIBLE = re.compile(r"[^\r\n]")
_PIECE = re.compile(
    rf'(?P<string>"[^"\r\n]*")|(?P<comment>#[^\r\n]*)|(?P<bracket>[()\[\]{{}}])|(?P<item>{_ITEM.pattern})', re.MULTILINE
)


def parse(source: Source) -> Program:
    """Parses a text.

    Raises:
        ProgramError: the text has mistakes."""
    program, diagnostics = parse_tolerantly(source)
    log = DiagnosticLog()
    log.add(diagnostics)
    log.stop_at_errors()
    return program


def parse_tolerantly(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Parses a text; returns its items, with `Missing` in place of lines that cannot be read, and the diagnostics."""
    if len(source.text) > LARGEST:
        return Program(items=(), source=source), (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return Program(items=(), source=source), (excess,)
    text, comments, diagnostics = _prepare(source)
    builder, reader, items = _read(source, text, comments)
    if reader.has_odd_brace:
        text, odd_braces = repair_braces(source, text)
        if odd_braces:
            diagnostics += odd_braces
            _, comments, _ = _prepare(source)  # the first reading has taken the comments
            builder, reader, items = _read(source, text, comments)
    reader.report_brackets()
    diagnostics += reader.mistakes + builder.mistakes
    offsets = sorted(reader.offsets + [diagnostic.span.start for diagnostic in diagnostics])
    readable_items = [replace(item, is_whole=False) if _is_broken(item, offsets) else item for item in items]
    ordered = sorted(set(diagnostics), key=lambda diagnostic: (diagnostic.span.start, diagnostic.code))
    return builder.program(readable_items), tuple(ordered)


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    """Parses `--set name=text` as the setting `name = text` of a recipe; returns None if the text has mistakes."""
    setting, diagnostics = _parse_setting(name, text)
    return setting, tuple(mistakes.in_setting(diagnostic, name) for diagnostic in diagnostics)


def _parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    source = Source(f"--set {name}", text, is_command_line=True)
    if len(text) > LARGEST:
        return None, (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return None, (excess,)
    prepared, comments, diagnostics = _prepare(source)
    if diagnostics:
        return None, tuple(diagnostics)
    builder = TreeBuilder(source, comments)
    reader = Reader(source, prepared, builder, "expression", limit=1)
    value = reader.read()
    diagnostics += reader.mistakes + builder.mistakes
    if diagnostics:
        return None, tuple(diagnostics)
    span = Span(source, 0, len(text))
    return Setting(path=Name(parts=tuple(name.split(".")), span=span), value=value, span=span), ()


def _read(source: Source, text: str, comments: Comments) -> tuple[TreeBuilder, Reader, list[Item]]:
    builder = TreeBuilder(source, comments)
    reader = Reader(source, text, builder, "start")
    return builder, reader, reader.read() or []


def _prepare(source: Source) -> tuple[str, Comments, list[Diagnostic]]:
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
            diagnostics.append(mistakes.unknown_character(Span(source, zero, zero + 1)))
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


def _is_broken(item: Item, offsets: list[int]) -> bool:
    """Returns whether an item contains one of the sorted offsets of mistakes."""
    if not getattr(item, "name", "use"):
        return True
    first = bisect_right(offsets, item.span.start)  # a mistake at its first word is that of the text before it
    return first < len(offsets) and offsets[first] <= item.span.end
