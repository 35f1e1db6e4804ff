"""Parses a text again after a change: only changed items are parsed, and the trees of the others are moved."""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.reading import LARGEST
from archlang.syntax.tree import Node, Program
from archlang.syntax.walk import walk
from archlang.syntax.words import find_excess

# The start of an item. An unindented `model` can be a part of a recipe.
_ITEM = re.compile(
    r"^(?:(?:use|block|extern|recipe|table)\b|model\s+[A-Za-z_]\w*\s*(?:\[[^\[\]]*\]\s*)?\()", re.MULTILINE
)
_NO_CODE = re.compile(r"[ \t\r\f\ufeff]*(?:#.*)?\n")
# How often lines with syntax errors are removed, to read the rest of their item.
_MOST_REPAIRS = 4
# A sign with which a line goes on.
_CONTINUES = re.compile(r"\|>|,")
_BRACE = re.compile(r'(?P<skipped>"[^"\r\n]*"|#[^\r\n]*)|[{}]')
_LINE = re.compile(r"([ \t]*+)[^\r\n]*+")
_NO_BRACE = re.compile(r"[^{}\r\n]")
_PAIR_OF_BRACES = re.compile(r"\{( *)\}")


@dataclass
class Piece:
    """A parsed piece of a text: its items, the comments after them (`closing`), its mistakes, and all of their spans,
    which move with the piece. If it has mistakes, they depend on the piece after it, which is `following`."""

    items: tuple[Node, ...]
    diagnostics: tuple[Diagnostic, ...]
    spans: list[Span]
    start: int
    source: Source
    following: str
    closing: tuple[str, ...] = ()

    def move(self, source: Source, start: int) -> None:
        """Moves the spans to where the piece starts in another text. The trees of the text before are not valid any
        more: copying them takes longer than parsing."""
        if start == self.start and source is self.source:
            return
        distance = start - self.start
        for span in self.spans:
            object.__setattr__(span, "source", source)
            object.__setattr__(span, "start", span.start + distance)
            object.__setattr__(span, "end", span.end + distance)
        self.start, self.source = start, source


@dataclass
class Pieces:
    """The pieces of the last text that was parsed, by their texts."""

    _pieces: dict[tuple[str, int], Piece] = field(default_factory=dict)
    _repaired: dict[tuple[str, int], Piece] = field(default_factory=dict)

    def parse(self, source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Returns what `parse_tolerantly` does."""
        if len(source.text) > LARGEST or find_excess(source) is not None:
            return parse_tolerantly(source)
        previous, self._pieces = self._pieces, {}
        texts = list(_split(source.text))
        previous_texts = {text for text, _ in previous}
        if sum(text not in previous_texts for _, text in texts) > len(texts) // 2:
            return self._parse_all(source, texts)
        items: list[Node] = []
        diagnostics: list[Diagnostic] = []
        closing: tuple[str, ...] = ()
        for key, start, following in _keys(texts):
            piece = previous.get(key)
            if piece is None or (piece.diagnostics and piece.following != following):
                piece = _parse_piece(source, key[0], following)
            piece.move(source, start)
            self._pieces[key] = piece
            items += piece.items
            diagnostics += piece.diagnostics
            closing = piece.closing
        return _program(source, items, closing), tuple(diagnostics)

    def readable(self, source: Source) -> Program:
        """Returns the program of the text that was parsed last, without the lines that cannot be parsed."""
        repaired, self._repaired = self._repaired, {}
        items: list[Node] = []
        for (text, count), piece in self._pieces.items():
            if piece.diagnostics:
                without_mistakes = repaired.get((text, count)) or _parse_repaired(piece, text)
                without_mistakes.move(source, piece.start)
                piece = self._repaired[text, count] = without_mistakes
            items += piece.items
        return _program(source, items)

    def _parse_all(self, source: Source, texts: list[tuple[int, str]]) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Parses a text of which most is new."""
        program, diagnostics = parse_tolerantly(source)
        starts = [start for start, _ in texts]
        items_of: dict[int, list[Node]] = {start: [] for start in starts}
        mistakes_of: dict[int, list[Diagnostic]] = {start: [] for start in starts}
        for item in program.all_items:
            items_of[starts[bisect_right(starts, item.span.start) - 1]].append(item)
        for diagnostic in diagnostics:
            mistakes_of[starts[bisect_right(starts, diagnostic.span.start) - 1]].append(diagnostic)
        for (key, start, following), after in zip(_keys(texts), [*starts[1:], -1], strict=True):
            closing = () if following else program.closing
            # A mistake at the beginning of a piece is that of the piece before, and comments at the end of the text may
            # be those of other pieces, whose items have mistakes.
            if mistakes_of[start] or mistakes_of.get(after) or (closing and diagnostics):
                self._pieces[key] = _parse_piece(source, key[0], following)
                self._pieces[key].move(source, start)
            else:
                self._pieces[key] = _piece(tuple(items_of[start]), (), start, source, following, closing)
        return program, diagnostics


def _split(text: str) -> Iterator[tuple[int, str]]:
    """Yields the pieces of a text with their starts. A piece begins with comments and empty lines above its item."""
    starts = [0]
    for match in _ITEM.finditer(text):
        start = match.start()
        while start > starts[-1]:
            line = text.rfind("\n", 0, start - 1) + 1
            if not _NO_CODE.fullmatch(text, line, start):
                break
            start = line
        if start > starts[-1]:
            starts.append(start)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start, text[start:end]


def _keys(texts: list[tuple[int, str]]) -> Iterator[tuple[tuple[str, int], int, str]]:
    """Yields the key of each piece, which is its text and how often it was there before, its start, and the piece after
    it."""
    counts: Counter[str] = Counter()
    following = [*(text for _, text in texts[1:]), ""]
    for (start, text), after in zip(texts, following, strict=True):
        counts[text] += 1
        yield (text, counts[text]), start, after


def _parse_piece(source: Source, text: str, following: str) -> Piece:
    """Parses a piece alone; if it has mistakes, with the piece after it."""
    for after in ("", following):
        alone = Source(source.path, text + after)
        program, diagnostics = parse_tolerantly(alone)
        if not diagnostics:
            break
    items = tuple(item for item in program.all_items if item.span.start < len(text))
    within = tuple(diagnostic for diagnostic in diagnostics if _is_within(diagnostic.span, len(text)))
    mistakes = within or diagnostics[:1]  # what is missing may show later in the next piece
    if items and not text.partition("\n")[0].strip():
        items = (replace(items[0], blank=True), *items[1:])
    return _piece(items, mistakes, 0, alone, following, () if following else program.closing)


def _is_within(mistake: Span, end: int) -> bool:
    """Whether a mistake begins before the end of a piece, or at the first word of the next one, where it shows."""
    between = mistake.source.text[end : mistake.start]
    return mistake.start < end or all(not line.strip() or line.lstrip().startswith("#") for line in between.split("\n"))


def _parse_repaired(piece: Piece, text: str) -> Piece:
    """Parses a piece with mistakes, without the lines that cannot be parsed: spaces replace them, except their braces.
    Returns the piece itself if no item can be parsed so."""
    has_odd_brace = any(diagnostic.span.text in ("{", "}") for diagnostic in piece.diagnostics)
    source = Source(piece.source.path, _with_braces_by_indentation(text) if has_odd_brace else text)
    items: tuple[Node, ...] = ()
    if source.text == text:
        spans = (diagnostic.span for diagnostic in piece.diagnostics)
        mistakes = [Span(source, span.start - piece.start, span.end - piece.start) for span in spans]
    else:
        program, diagnostics = parse_tolerantly(source)
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
        program, diagnostics = parse_tolerantly(source)
        items, mistakes = program.items, [diagnostic.span for diagnostic in diagnostics]
    return _piece(items, (), 0, source, "") if items else piece


def _piece(
    items: tuple[Node, ...],
    diagnostics: tuple[Diagnostic, ...],
    start: int,
    source: Source,
    following: str,
    closing: tuple[str, ...] = (),
) -> Piece:
    spans: dict[int, Span] = {}
    for item in items:
        for node in walk(item):
            for value in vars(node).values():
                if isinstance(value, Span):
                    spans[id(value)] = value
    for diagnostic in diagnostics:
        places = (diagnostic.span, *(label.span for label in diagnostic.labels), *(e.span for e in diagnostic.edits))
        spans.update({id(span): span for span in places})
    return Piece(items, diagnostics, [*spans.values()], start, source, following, closing)


def _program(source: Source, items: list[Node], closing: tuple[str, ...] = ()) -> Program:
    return Program.of(items, source, closing)


def without_line(source: Source, line: int) -> str:
    """Returns the text with spaces in place of a line, but for its braces whose pair is on another line."""
    start, end = source.line_bounds(line)
    braces, pairs = _NO_BRACE.sub(" ", source.text[start:end]), 1
    while pairs:
        braces, pairs = _PAIR_OF_BRACES.subn(r" \1 ", braces)
    return source.text[:start] + braces + source.text[end:]


def _with_braces_by_indentation(text: str) -> str:
    """Returns the text of a piece with the braces that its indentation shows. Spaces replace lines with a `{` that no
    line of their indentation closes, and each `}` that is indented deeper than the line of its `{`. If the brace of the
    item is not closed, a `}` replaces the space at its end."""
    opened: list[tuple[int, re.Match[str]]] = []  # the indentation and the line of each open brace
    extra: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        indentation = len(line[1])
        for brace in _BRACE.finditer(text, *line.span()):
            is_first = brace.start() == line.end(1)
            if brace[0] == "{":
                opened.append((indentation, line))
            elif brace[0] == "}":
                while is_first and opened and opened[-1][0] > indentation:
                    extra.append(opened.pop()[1].span())
                if opened and (opened[-1][0] == indentation or not is_first):
                    opened.pop()
                else:
                    extra.append(brace.span())
    extra += [line.span() for indentation, line in opened if indentation > 0]
    characters = list(text)
    for start, end in set(extra):
        characters[start:end] = " " * (end - start)
    if any(indentation == 0 for indentation, _ in opened) and text[-1:].isspace():
        characters[-1] = "}"
    return "".join(characters)


def _half_written(mistake: Span) -> int:
    """Returns the line that a mistake comes from: if a line cannot begin as it does, the one before it goes on."""
    source = mistake.source
    start, _ = source.line_bounds(mistake.line)
    if source.text[start : mistake.start].strip() or not _CONTINUES.match(mistake.text):
        return mistake.line
    before = source.text[:start].rstrip()
    return source.position(len(before))[0] if before else mistake.line
