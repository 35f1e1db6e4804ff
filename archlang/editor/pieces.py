"""Parses a text again after a change: only changed items are parsed, and the trees of the others are moved."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import MOST_ERRORS
from archlang.source import Source, Span
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.pieces import Piece, after_piece, join, parse_pieces, split
from archlang.syntax.reading import LARGEST
from archlang.syntax.tree import Node, Program
from archlang.syntax.whole import parse_sound, parse_whole
from archlang.syntax.words import find_excess

# How often lines with syntax errors are removed, to read the rest of their item.
_MOST_REPAIRS = 4
# A sign with which a line goes on.
_CONTINUES = re.compile(r"\|>|,")
_BRACE = re.compile(r'(?P<skipped>"[^"\r\n]*"|#[^\r\n]*)|[{}]')
_LINE = re.compile(r"([ \t]*+)[^\r\n]*+")
_WORD = re.compile(r"#[^\r\n]*|(?P<code>[^\s#]+)")
_NO_BRACE = re.compile(r"[^{}\r\n]")
_PAIR_OF_BRACES = re.compile(r"\{( *)\}")


@dataclass
class Pieces:
    """The pieces of the last text that was parsed, by their texts."""

    _pieces: dict[tuple[str, int], list[Piece]] = field(default_factory=dict)
    _repaired: dict[tuple[str, int], Piece] = field(default_factory=dict)

    def parse(self, source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Returns what `parse_tolerantly` does."""
        if len(source.text) > LARGEST or find_excess(source) is not None:
            return parse_tolerantly(source)
        previous, self._pieces = self._pieces, {}
        texts = list(split(source.text))
        previous_texts = {text for text, _ in previous}
        if sum(text not in previous_texts for _, text in texts) > len(texts) // 2:
            program = parse_sound(source)
            if program is not None:
                self._keep(program, texts)
                return program, ()
        count = 0
        for key, start in _keys(texts):
            if count > MOST_ERRORS:
                break  # the mistakes of others are not shown
            pieces = previous.get(key)
            if pieces is None or _is_changed(pieces, source, start):
                pieces = parse_pieces(source, start, key[0])
            distance = start - pieces[0].start
            for piece in pieces:
                piece.move(source, piece.start + distance)
            self._pieces[key] = pieces
            count += sum(len(piece.diagnostics) for piece in pieces)
        return join(source, [*chain(*self._pieces.values())])

    def readable(self, source: Source) -> Program:
        """Returns the program of the text that was parsed last, without the lines that cannot be parsed."""
        repaired, self._repaired = self._repaired, {}
        items: list[Node] = []
        counts: Counter[str] = Counter()
        for piece in chain(*self._pieces.values()):
            if piece.diagnostics:
                counts[piece.text] += 1
                key = piece.text, counts[piece.text]
                without_mistakes = repaired.get(key) or _parse_repaired(piece)
                without_mistakes.move(source, piece.start)
                piece = self._repaired[key] = without_mistakes
            items += piece.items
        return Program.of(items, source)

    def _keep(self, program: Program, texts: list[tuple[int, str]]) -> None:
        """Keeps the pieces of a program without mistakes."""
        starts = [start for start, _ in texts]
        items_of: dict[int, list[Node]] = {start: [] for start in starts}
        for item in program.all_items:
            items_of[starts[bisect_right(starts, item.span.start) - 1]].append(item)
        for key, start in _keys(texts):
            closing = program.closing if start == starts[-1] else ()
            self._pieces[key] = [Piece.of(key[0], tuple(items_of[start]), (), start, program.source, closing=closing)]


def _keys(texts: list[tuple[int, str]]) -> Iterator[tuple[tuple[str, int], int]]:
    """Yields the key of each piece, which is its text and how often it was there before, and its start."""
    counts: Counter[str] = Counter()
    for start, text in texts:
        counts[text] += 1
        yield (text, counts[text]), start


def _is_changed(pieces: list[Piece], source: Source, start: int) -> bool:
    """Whether the text has changed on which the mistakes of pieces depend, the first of which starts there now."""
    distance = start - pieces[0].start
    return any(
        piece.diagnostics and piece.following != after_piece(source.text, piece.start + distance + len(piece.text))
        for piece in pieces
    )


def _parse_repaired(piece: Piece) -> Piece:
    """Parses a piece with mistakes, without the lines that cannot be parsed: spaces replace them, except their braces.
    Returns the piece itself if no item can be parsed so."""
    text = piece.text
    has_odd_brace = any(diagnostic.span.text in ("{", "}") for diagnostic in piece.diagnostics)
    source = Source(piece.source.path, _with_braces_by_indentation(text) if has_odd_brace else text)
    items: tuple[Node, ...] = ()
    if source.text == text:
        spans = (diagnostic.span for diagnostic in piece.diagnostics)
        mistakes = [Span(source, span.start - piece.start, span.end - piece.start) for span in spans]
    else:
        program, diagnostics = parse_whole(source)
        items, mistakes = program.items, [diagnostic.span for diagnostic in diagnostics]
    seen = set[int]()
    for _ in range(_MOST_REPAIRS):
        mistakes = [span for span in mistakes if span.text != "{"]
        lines = {_half_written(span) if span.start not in seen else span.line for span in mistakes}
        seen |= {span.start for span in mistakes}
        repaired = source.text
        for line in lines:
            repaired = without_line(Source(source.path, repaired), line)
        if repaired == source.text:
            break
        source = Source(source.path, repaired)
        program, diagnostics = parse_whole(source)
        items, mistakes = program.items, [diagnostic.span for diagnostic in diagnostics]
    return Piece.of(text, items, (), 0, source) if items else piece


def without_line(source: Source, line: int) -> str:
    """Returns the text with spaces in place of a line, but for its braces whose pair is on another line."""
    start, end = source.line_bounds(line)
    braces, pairs = _NO_BRACE.sub(" ", source.text[start:end]), 1
    while pairs:
        braces, pairs = _PAIR_OF_BRACES.subn(r" \1 ", braces)
    return source.text[:start] + braces + source.text[end:]


def _with_braces_by_indentation(text: str) -> str:
    """Returns the text of a piece with the braces that its indentation shows: `}` replaces a space where the body of an
    open `{` ends, and spaces replace each `}` that is indented deeper than the line of its `{`. If there is no such
    space, spaces replace the line of the `{`."""
    opened: list[tuple[int, re.Match[str]]] = []  # the indentation and the line of each open brace
    extra: list[tuple[int, int]] = []
    unclosed: list[tuple[int, re.Match[str]]] = []
    for line in _LINE.finditer(text):
        indentation = len(line[1])
        for brace in _BRACE.finditer(text, *line.span()):
            is_first = brace.start() == line.end(1)
            if brace[0] == "{":
                # The header of an item may end on an indented line.
                opened.append((indentation if opened else 0, line))
            elif brace[0] == "}":
                while is_first and opened and opened[-1][0] > indentation:
                    unclosed.append(opened.pop())
                if opened and (opened[-1][0] == indentation or not is_first):
                    opened.pop()
                else:
                    extra.append(brace.span())
    closing: set[int] = set()
    for indentation, line in (*unclosed, *reversed(opened)):
        place = _end_of_body(text, line.end(), indentation, closing)
        if place is not None:
            closing.add(place)
        elif indentation > 0:
            extra.append(line.span())
    characters = list(text)
    for start, end in set(extra):
        characters[start:end] = " " * (end - start)
    for place in closing:
        characters[place] = "}"
    return "".join(characters)


def _end_of_body(text: str, start: int, indentation: int, taken: Collection[int]) -> int | None:
    """Returns the place of a space at which a body ends that begins at an offset: before the first line that is not
    indented deeper than its header. None if all spaces there are taken."""
    following = re.compile(rf"^[ \t]{{0,{indentation}}}(?=[^\s#])", re.MULTILINE).search(text, start)
    end = len(text) if following is None or indentation == 0 else following.end()
    words = [word for word in _WORD.finditer(text, start, end) if word["code"]]
    first = words[-1].end() if words else start
    comment = text.find("#", first, end)
    if comment >= 0 and "\n" not in text[first:comment]:  # it takes the rest of the line
        first = text.find("\n", comment, end) + 1 or end
        comment = text.find("#", first, end)
    last = comment if comment >= 0 else end
    return next((place for place in range(last - 1, first - 1, -1) if place not in taken), None)


def _half_written(mistake: Span) -> int:
    """Returns the line that a mistake comes from: if a line cannot begin as it does, the one before it goes on."""
    source = mistake.source
    start, _ = source.line_bounds(mistake.line)
    if source.text[start : mistake.start].strip() or not _CONTINUES.match(mistake.text):
        return mistake.line
    before = source.text[:start].rstrip()
    return source.position(len(before))[0] if before else mistake.line
