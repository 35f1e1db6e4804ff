"""What a parser has read of a text so far, and the words around the place where it is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax.expected import Expected, expected, named_after
from archlang.syntax.grammar import spellings
from archlang.syntax.line_mistakes import in_line
from archlang.syntax.outline import CLAUSE_WORDS, ITEM_WORDS, PART_WORDS, Outline
from archlang.syntax.parser_stack import ParserStack, terminal
from archlang.syntax.tree import Node

if TYPE_CHECKING:
    from lark import Token

_WORD = re.compile(r"\w+")
# A sign or a word that a value follows, at the end of a text.
_UNFINISHED = re.compile(
    r"(?:\|>|<-|[=!<>]=|\.\.|[-+*/%=<]|(?<!-)>|(?<![\w.])(?:in|and|or|not|when|return|emit|if|repeat|stack))\Z"
)
_LAST_PIECE = re.compile(r'(?:[\w.]+|"[^"\r\n]*"|->|<-|\|>|[=!<>]=|\S)\Z')
_LONGEST_SIGN = 8
LONGEST_COMMENT = 1_000
_ITEMS_WITH_BODIES = ("BLOCK", "MODEL", "RECIPE", "TABLE")


@dataclass
class Progress:
    """The text of a source, with spaces in place of the parts to skip, and the stack of its parser."""

    source: Source
    text: str
    stack: ParserStack

    @cached_property
    def outline(self) -> Outline:
        return Outline.of(self.text)

    def begins_part(self, word: str, place: int) -> bool:
        """Returns whether a word at a place begins a part of a recipe or a table, a clause of an extern or an item."""
        brace = self.stack.brace_around()
        if brace is None:
            return word in (*CLAUSE_WORDS, *ITEM_WORDS) and self.outline.begins_line(place)
        return word in PART_WORDS and brace in self.outline.recipes

    def unfinished_sign(self, place: int) -> Span | None:
        """Returns the sign or word before a place that a value follows."""
        last = self.end_of_code(place)
        sign = _UNFINISHED.search(self.text, max(0, last - _LONGEST_SIGN), last)
        return None if sign is None else self.span(*sign.span())

    def end_of_code(self, place: int) -> int:
        """Returns the end of the last word or sign before a place, without comments, of which there may be many."""
        while True:
            begin = max(0, place - LONGEST_COMMENT)
            code = self.text[begin:place].rstrip()
            end = begin + len(code)
            comment = self.text.find("#", self.line_start(end), end)
            if comment < 0:
                return end
            place = comment

    def last_piece(self, place: int) -> Span | None:
        """Returns the last word or sign before a place."""
        end = self.end_of_code(place)
        piece = _LAST_PIECE.search(self.text, max(0, end - LONGEST_COMMENT), end)
        return None if piece is None else self.span(*piece.span())

    def item_around(self) -> str:
        """Returns the word of the item in whose body the parser is; empty outside of bodies."""
        if not self.stack.open_braces():
            return ""
        types = [terminal(value) for value in self.stack.values]
        return next((str(kind).lower() for kind in types if kind in _ITEMS_WITH_BODIES), "")

    def expected(self, place: int | None = None) -> Expected:
        """Returns what the grammar accepts, after all that was read, or at a place instead of what was read since."""
        last = self.stack.last if place is None else self.stack.last_before(place)
        is_read = any(terminal(value) == "READS" for value in self.stack.values)
        kind = named_after(terminal(last), self.stack.bracket_around(), is_read)
        accepted = self.stack.accepted() if place is None else self.stack.accepted_at(place)
        return Expected((kind,)) if kind else expected(accepted, spellings())

    def name_before(self) -> Span | None:
        last = self.stack.last
        if isinstance(last, Node):
            return last.span if _WORD.fullmatch(last.span.text) else None
        return self.token_span(last) if terminal(last) == "NAME" else None

    def begins_statement(self, name: Span) -> bool:
        """Returns whether a name is the first word of a statement, or of an item."""
        return terminal(self.stack.last_before(name.start)) in (None, "LBRACE", "RBRACE")

    def let(self) -> Span | None:
        """Returns the name that the parser has read after `let`, if it is in the statement."""
        values = self.stack.values
        for index in range(len(values) - 2, -1, -1):
            if terminal(values[index]) == "LET":
                return self.token_span(values[index + 1]) if terminal(values[index + 1]) == "NAME" else None
            if terminal(values[index]) == "LBRACE":
                return None
        return None

    def in_recipe_line(self, token: Token) -> Diagnostic | None:
        """Returns a diagnostic for an unexpected token in a line of a recipe or a table, by what the line says."""
        if self.stack.brace_around() not in self.outline.recipes:
            return None
        span = self.span(token.start_pos or 0, token.end_pos or 0)
        return in_line(span, token, self.outline.is_first(span.start))

    def token_span(self, token: Any) -> Span:  # Any: a token of lark, which is imported late
        return self.span(token.start_pos, token.end_pos)

    def line_start(self, place: int) -> int:
        return self.source.line_bounds(self.source.position(place)[0])[0]

    def same_line(self, first: int, second: int) -> bool:
        return self.source.position(first)[0] == self.source.position(second)[0]

    def span(self, start: int, end: int) -> Span:
        return Span(self.source, start, end)
