"""The place of a token that the grammar does not accept, and what was expected there."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from archlang.errors import Source, Span
from archlang.syntax.grammar import spellings
from archlang.syntax.mistakes import Expected, expected, named_after
from archlang.syntax.stack import ParserStack, terminal

if TYPE_CHECKING:
    from lark import Token

# Characters around a token in which a name may be bound.
_NEAR = 5_000


@dataclass(frozen=True)
class Place:
    """A token that the grammar does not accept after those of its unit before it; None at the end of a text. `rest`
    begins with it, if it belongs to the unit, and `after` follows the unit."""

    source: Source
    before: list[Token]
    token: Token | None
    rest: list[Token]
    after: Token | None
    stack: ParserStack
    is_in_recipe: bool

    @cached_property
    def expected(self) -> Expected:
        last = terminal(self.stack.values[-1]) if self.stack.values else ""
        is_read = any(terminal(value) == "READS" for value in self.stack.values)
        kind = named_after(last, self.around, is_read)
        return Expected((kind,)) if kind else expected(self.stack.accepted(), spellings())

    @cached_property
    def around(self) -> str:
        """The innermost open bracket; empty if there is none."""
        return self.stack.bracket_around()

    @property
    def is_in_body(self) -> bool:
        """Whether the token is in the body of a block or a model."""
        return not self.is_in_recipe and any(terminal(value) == "LBRACE" for value in self.stack.values)

    @property
    def token_start(self) -> int:
        return len(self.source.text) if self.token is None else self.token.start_pos or 0

    @property
    def unit_start(self) -> int:
        return (self.before[0].start_pos or 0) if self.before else self.token_start

    @property
    def token_text(self) -> str:
        return "" if self.token is None else str(self.token)

    @property
    def token_span(self) -> Span:
        return Span(self.source, self.token_start, self.token_start + len(self.token_text))

    def back(self) -> Place:
        """Returns the place of the token before, with which no statement may begin."""
        return replace(self, before=self.before[:-1], token=self.before[-1], rest=[self.before[-1], *self.rest])

    def is_bound(self, name: str) -> bool:
        """Returns whether a text near the token binds a name."""
        bound = re.compile(rf"(?<!let )\b{re.escape(name)}[ \t]*(?:=(?!=)|<-|:)")
        start = self.unit_start
        return bound.search(self.source.text, max(0, start - _NEAR), start + _NEAR) is not None

    def span(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)
