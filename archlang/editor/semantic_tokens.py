"""The kinds of the words of a program, by which an editor colours them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.highlighting import CONTEXTUAL, TYPES
from archlang.editor.symbols import DocumentNames, Occurrence
from archlang.errors import Source, Span
from archlang.errors.effort import memoized
from archlang.resolve.resolve import Item
from archlang.resolve.values import KINDS as KINDS_OF_STATICS
from archlang.syntax.tokens import RESERVED, pieces
from archlang.syntax.tree import Use

KINDS = (
    "keyword", "comment", "string", "number", "type", "function", "class", "interface", "event", "struct", "property",
    "parameter", "typeParameter", "variable", "namespace", "enumMember",
)  # fmt: skip
MODIFIERS = ("declaration", "defaultLibrary")

_WORD = re.compile(r"\w+")
_KIND_OF_SYMBOL = {
    "block": "function",
    "model": "class",
    "task": "interface",
    "optimizer": "interface",
    "recipe": "event",
    "table": "struct",
    "static": "property",
    "input": "parameter",
    "size": "typeParameter",
    "value": "variable",
    "instance": "variable",
    "file": "namespace",
    "alias": "namespace",
}
_KINDS = {"COMMENT": "comment", "STRING": "string", "NUMBER": "number"}
_KEYWORDS = frozenset((*CONTEXTUAL, *RESERVED))


@dataclass(frozen=True)
class Token:
    """A word with its kind, one of `KINDS`, and whether it stands where it is defined, or names a part of the
    library."""

    span: Span
    kind: str
    is_declaration: bool = False
    is_of_library: bool = False


def semantic_tokens(document: Document) -> tuple[Token, ...]:
    """Returns the words, numbers, strings and comments of a program in order; none overlaps another."""
    tokens, end, names = list[Token](), 0, DocumentNames(document)
    for item in document.program.items:
        tokens += _tokens_between(document.source, end, item.span.start, {})
        tokens += _tokens_of_item(names, item)
        end = max(end, item.span.end)
    return (*tokens, *_tokens_between(document.source, end, len(document.text), {}))


def _tokens_of_item(names: DocumentNames, item: Use | Item) -> Iterator[Token]:
    source, start = item.span.source, item.span.start

    def computed() -> list[tuple[int, int, Token]]:
        named = {place.span.start: place for place in names.within(item)}
        tokens = _tokens_between(source, start, item.span.end, named)
        return [(token.span.start - start, token.span.end - start, token) for token in tokens]

    content = None if isinstance(item, Use) else names.document.resolved.content_of(item)
    for first, last, token in memoized(content and ("tokens", content), computed):
        yield Token(Span(source, start + first, start + last), token.kind, token.is_declaration, token.is_of_library)


def _tokens_between(source: Source, start: int, end: int, named: Mapping[int, Occurrence]) -> Iterator[Token]:
    for piece in pieces(source.text, start, end):
        words = _WORD.finditer(source.text, piece.start(), piece.end()) if piece.lastgroup == "WORD" else (piece,)
        for word in words:
            place, span = named.get(word.start()), Span(source, word.start(), word.end())
            if place is not None and place.span.end >= span.end:
                yield _of_name(place, span)
            elif (kind := _KINDS.get(piece.lastgroup or "") or _kind_of_word(span)) is not None:
                yield Token(span, kind)


def _of_name(place: Occurrence, span: Span) -> Token:
    symbol = place.symbol
    is_of_library = symbol.item is not None and symbol.is_of_library
    return Token(span, _KIND_OF_SYMBOL.get(symbol.kind, "variable"), symbol.span == place.span, is_of_library)


def _kind_of_word(span: Span) -> str | None:
    text, word = span.source.text, span.text
    before, after = text[max(span.start - 9, 0) : span.start].rstrip(" ")[-1:], text[span.end : span.end + 1]
    if (word in TYPES and (after == "[" or before in (":", ">"))) or (word in KINDS_OF_STATICS and before == ":"):
        return "type"
    if word in _KEYWORDS:
        return "keyword"
    return "enumMember" if word.isidentifier() and before in ("=", ",", "[") else None
