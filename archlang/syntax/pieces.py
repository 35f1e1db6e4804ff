"""Divides a text at its items into pieces, which are parsed one by one if the text has mistakes.

Words such as `table` can also be the names of variables. Where such a word at the begin of a line may be one, a text is
divided only if what is around it has mistakes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import MOST_ERRORS
from archlang.source import Source, Span
from archlang.syntax.grammar import spellings
from archlang.syntax.outline import ITEM_WORDS, MODEL_HEAD
from archlang.syntax.tree import Node, Program
from archlang.syntax.walk import walk
from archlang.syntax.whole import parse_sound, parse_whole

# The start of an item, or a variable. An unindented `model` can be a part of a recipe.
_WORDS = "|".join(word for word in ITEM_WORDS if word != "model")
_ITEM = re.compile(rf"^(?:(?:{_WORDS})\b|{MODEL_HEAD.pattern})", re.MULTILINE)
# The head of an item that cannot be in the middle of another one, if its name is no keyword.
_SURE_HEAD = re.compile(
    r"""
      use [ \t]+ (?: "[^"\r\n]*" | (?P<used>[\w.]+) ) [ \t]* (?: \#[^\r\n]* )? $ (?! \s* (?: =(?!=) | <- ) )
    | (?: block | model | extern[ \t]+block ) [ \t]+ (?P<defined>\w+) [ \t]* (?: [\[(] | -> )
    | extern [ \t]+ (?: task | optimizer | settings ) [ \t]+ (?P<declared>\w+)
    | (?: recipe | table ) [ \t]+ (?P<named>\w+) [ \t]* (?: \{ | from\b )
    """,
    re.VERBOSE | re.MULTILINE,
)
_NO_CODE = re.compile(r"[ \t\r\f\ufeff]*(?:#.*)?\n")
# What a parser reads after a piece, to see where it ends: a word, and the rest of the line of the next one.
_AFTER = re.compile(r"(?:\s|#[^\r\n]*)*+\S*(?:\s|#[^\r\n]*)*+[^\r\n]*")


@dataclass
class Piece:
    """A parsed piece of a text: its items, the comments after them (`closing`), its mistakes, and all of their spans,
    which move with the piece. If it has mistakes, they depend on the text after it, which is `following`."""

    text: str
    items: tuple[Node, ...]
    diagnostics: tuple[Diagnostic, ...]
    spans: list[Span]
    start: int
    source: Source
    following: str
    closing: tuple[str, ...] = ()

    @staticmethod
    def of(
        text: str,
        items: tuple[Node, ...],
        diagnostics: tuple[Diagnostic, ...],
        start: int,
        source: Source,
        following: str = "",
        closing: tuple[str, ...] = (),
    ) -> "Piece":
        spans: dict[int, Span] = {}
        for item in items:
            for node in walk(item):
                for value in vars(node).values():
                    if isinstance(value, Span):
                        spans[id(value)] = value
        for diagnostic in diagnostics:
            places = (
                diagnostic.span,
                *(label.span for label in diagnostic.labels),
                *(e.span for e in (*diagnostic.edits, *diagnostic.alternatives)),
            )
            spans.update({id(span): span for span in places})
        return Piece(text, items, diagnostics, [*spans.values()], start, source, following, closing)

    def move(self, source: Source, start: int) -> None:
        """Moves the spans to where the piece starts in another text. The trees of the text before are not valid any
        more: copying them takes longer than parsing."""
        if start == self.start and source is self.source:
            return
        distance, set_attribute = start - self.start, object.__setattr__
        for span in self.spans:
            set_attribute(span, "source", source)
            if distance:
                set_attribute(span, "start", span.start + distance)
                set_attribute(span, "end", span.end + distance)
        self.start, self.source = start, source
        # Python 3.14 keeps the hash that a tuple had before its spans moved.
        self.diagnostics = tuple(
            replace(each, labels=(*each.labels,), edits=(*each.edits,), alternatives=(*each.alternatives,))
            for each in self.diagnostics
        )


def parse_items(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Parses a text with mistakes: each of its pieces alone, so that no mistake reaches beyond its item."""
    pieces = (piece for start, text in split(source.text) for piece in parse_pieces(source, start, text))
    return join(source, _until_too_many_mistakes(pieces))


def join(source: Source, pieces: list[Piece]) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Returns the program that pieces are, and their mistakes."""
    items = [item for piece in pieces for item in piece.items]
    # A mistake at the first word of a piece can be that of the piece before it too.
    diagnostics = dict.fromkeys(diagnostic for piece in pieces for diagnostic in piece.diagnostics)
    return Program.of(items, source, pieces[-1].closing), tuple(diagnostics)


def split(text: str) -> Iterator[tuple[int, str]]:
    """Yields the pieces of a text with their starts. A piece begins with comments and empty lines above its item."""
    return _split(text, [item.start() for item in _ITEM.finditer(text) if _is_sure(text, item.start())])


def _split(text: str, items: list[int]) -> Iterator[tuple[int, str]]:
    starts = [0]
    for start in items:
        while start > starts[-1]:
            line = text.rfind("\n", 0, start - 1) + 1
            if not _NO_CODE.fullmatch(text, line, start):
                break
            start = line
        if start > starts[-1]:
            starts.append(start)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start, text[start:end]


def _is_sure(text: str, place: int) -> bool:
    head = _SURE_HEAD.match(text, place)
    return head is not None and not {*head.groupdict().values()} & {*spellings().values()}


def after_piece(text: str, end: int) -> str:
    """Returns what the mistakes of a piece that ends there depend on, of the text after it."""
    following = _AFTER.match(text, end)
    return following[0] if following else ""


def parse_pieces(source: Source, start: int, text: str) -> list[Piece]:
    """Parses a piece of a text alone. If it has mistakes, it is divided also where an item only may begin."""
    piece = _sound(source, start, text)
    if piece is not None:
        return [piece]
    parts = list(_split(text, [item.start() for item in _ITEM.finditer(text)]))
    if len(parts) == 1:
        return [_mistaken(source, start, text)]
    pieces = (_sound(source, start + place, part) or _mistaken(source, start + place, part) for place, part in parts)
    return _until_too_many_mistakes(pieces)


def _until_too_many_mistakes(pieces: Iterator[Piece]) -> list[Piece]:
    """Returns the pieces up to the last one whose mistakes are shown."""
    read: list[Piece] = []
    count = 0
    for piece in pieces:
        read.append(piece)
        count += len(piece.diagnostics)
        if count > MOST_ERRORS:
            break
    return read


def _sound(source: Source, start: int, text: str) -> Piece | None:
    """Parses a piece alone; returns None if it has mistakes."""
    alone = Source(source.path, text)
    program = parse_sound(alone)
    if program is None:
        return None
    closing = () if start + len(text) < len(source.text) else program.closing
    piece = Piece.of(text, _items(program, text), (), 0, alone, closing=closing)
    piece.move(source, start)
    return piece


def _mistaken(source: Source, start: int, text: str) -> Piece:
    """Parses a piece that has mistakes with the first line of the next piece, which shows some."""
    end, following = len(text), after_piece(source.text, start + len(text))
    read = Source(source.path, text + following)
    program, diagnostics = parse_whole(read, end)
    mistakes = tuple(each for each in diagnostics if _is_within(each.span, end)) if following else diagnostics
    if not mistakes:
        read = Source(source.path, text)
        program, mistakes = parse_whole(read)
    closing = () if following else program.closing
    piece = Piece.of(text, _items(program, text), mistakes, 0, read, following, closing)
    piece.move(source, start)
    return piece


def _items(program: Program, text: str) -> tuple[Node, ...]:
    """Returns the items of a piece, the first of which may be below an empty line."""
    items = tuple(item for item in program.all_items if item.span.start < len(text))
    if items and not text.partition("\n")[0].strip():
        return (replace(items[0], blank=True), *items[1:])
    return items


def _is_within(mistake: Span, end: int) -> bool:
    """Whether a mistake begins before the end of a piece, or at the first word of the next one, where it shows."""
    between = mistake.source.text[end : mistake.start]
    return mistake.start < end or all(not line.strip() or line.lstrip().startswith("#") for line in between.split("\n"))
