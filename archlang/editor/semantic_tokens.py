"""The kinds of the words of a program, by which an editor colours them."""

import re
from dataclasses import dataclass

from archlang.editor.document import Document
from archlang.editor.highlighting import CONTEXTUAL, TYPES
from archlang.editor.symbols import DocumentNames, Occurrence
from archlang.errors import Span
from archlang.resolve.values import KINDS as KINDS_OF_STATICS
from archlang.syntax.tokens import RESERVED, pieces

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
    source, text = document.source, document.text
    named = {place.span.start: place for place in DocumentNames(document).occurrences}
    tokens = []
    for piece in pieces(text):
        words = _WORD.finditer(text, piece.start(), piece.end()) if piece.lastgroup == "WORD" else (piece,)
        for word in words:
            place, span = named.get(word.start()), Span(source, word.start(), word.end())
            if place is not None and place.span.end >= span.end:
                tokens.append(_of_name(place, span))
            elif (kind := _KINDS.get(piece.lastgroup or "") or _kind_of_word(span)) is not None:
                tokens.append(Token(span, kind))
    return tuple(tokens)


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
