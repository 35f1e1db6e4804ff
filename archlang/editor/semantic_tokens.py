"""The kinds of the words of a program, by which an editor colours them."""

import re
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.highlighting import CONTEXTUAL, TYPES
from archlang.editor.symbols import Names, Occurrence
from archlang.names import library
from archlang.names.values import KINDS as KINDS_OF_STATICS
from archlang.source import Span
from archlang.syntax.tokens import RESERVED

KINDS = (
    "keyword", "comment", "string", "number", "type", "function", "class", "interface", "event", "struct", "property",
    "parameter", "typeParameter", "variable", "namespace", "enumMember",
)  # fmt: skip
MODIFIERS = ("declaration", "defaultLibrary")

_PIECE = re.compile(
    r'(?P<comment>#[^\r\n]*)|(?P<string>"[^"\r\n]*")|(?P<number>(?<![\w.])\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)'
    r"|(?P<word>[A-Za-z_]\w*)"
)
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
    source, text = document.source, document.text
    named = {place.span.start: place for place in Names(document).occurrences}
    tokens = []
    for piece in _PIECE.finditer(text):
        place = named.get(piece.start())
        if place is not None and place.span.end >= piece.end():
            tokens.append(_of_name(place, Span(source, piece.start(), piece.end())))
        elif (kind := _kind(piece, text)) is not None:
            tokens.append(Token(Span(source, piece.start(), piece.end()), kind))
    return tuple(tokens)


def _of_name(place: Occurrence, span: Span) -> Token:
    symbol = place.symbol
    is_of_library = symbol.item is not None and symbol.span.source.path.startswith(str(library.PACKAGE))
    return Token(span, _KIND_OF_SYMBOL.get(symbol.kind, "variable"), symbol.span == place.span, is_of_library)


def _kind(piece: re.Match[str], text: str) -> str | None:
    if piece.lastgroup != "word":
        return piece.lastgroup
    word = piece[0]
    before, after = (
        text[max(piece.start() - 9, 0) : piece.start()].rstrip(" ")[-1:],
        text[piece.end() : piece.end() + 1],
    )
    if (word in TYPES and (after == "[" or before in (":", ">"))) or (word in KINDS_OF_STATICS and before == ":"):
        return "type"
    if word in _KEYWORDS:
        return "keyword"
    return "enumMember" if before in ("=", ",", "[") else None
