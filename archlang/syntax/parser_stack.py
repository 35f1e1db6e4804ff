"""The stack of a parser that recovers from a mistake: what it has read, and substitutes for what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from archlang.syntax.builders.parts import start_of
from archlang.syntax.tree import Name

if TYPE_CHECKING:
    from lark import Token
    from lark.parsers.lalr_interactive_parser import InteractiveParser

_STATIC = re.compile(r"(?!(?:task|model|train|test|vary|search|claim)\.)[A-Za-z_][\w.]*\s*=(?!=)|[\])]")
_OPENERS = ("LPAR", "LSQB", "LBRACE")
_CLOSERS = ("RPAR", "RSQB", "RBRACE")


class ParserStack:
    """The values on the stack of a parser: tokens, and nodes made of them."""

    def __init__(self, run: InteractiveParser) -> None:
        self._run = run

    @property
    def values(self) -> list[Any]:  # Any: tokens and nodes
        values: list[Any] = self._run.parser_state.value_stack
        return values

    @property
    def last(self) -> object:
        """The top of the stack; None if it is empty."""
        return self.values[-1] if self.values else None

    @property
    def item(self) -> int:
        """The index at which the last item begins, after the complete items."""
        return int(bool(self.values) and terminal(self.values[0]) is None)

    def accepted(self) -> set[str]:
        """Returns the terminals that the grammar accepts next."""
        terminals: set[str] = self._run.accepts()  # type: ignore[no-untyped-call]  # lark has no annotation there
        return terminals

    def accepted_at(self, place: int) -> set[str]:
        """Returns the terminals that the grammar accepts at a place, instead of what the parser has read since."""
        state = self._run.parser_state
        values, states = state.value_stack.copy(), state.state_stack.copy()
        self.drop(self._count_before(place))
        accepted = self.accepted()
        state.value_stack[:], state.state_stack[:] = values, states
        return accepted

    def last_before(self, place: int) -> object:
        """Returns the last value that begins before a place; None if there is none."""
        count = self._count_before(place)
        return self.values[count - 1] if count else None

    def begins_with_keyword(self, place: int) -> bool:
        """Returns whether a keyword that the parser has read begins at a place."""
        kinds = (terminal(value) for value in self.values if terminal(value) and value.start_pos == place)
        return next(kinds, "NAME") != "NAME"

    def value_of_choice(self) -> int | None:
        """Returns the place of the value of a line `task`, `model` or `train` that the parser reads; None if it reads
        another line."""
        for index in range(len(self.values) - 1, 0, -1):
            kind = terminal(self.values[index - 1])
            if kind in ("TASK", "MODEL", "TRAIN"):
                return start_of(self.values[index])
            if kind == "LBRACE":
                return None
        return None

    def lacks_statics(self, text: str, place: int) -> bool:
        """Returns whether statics without their `[` begin at a place, as in the line after `train adamw`."""
        is_bare = terminal(self.last) in ("NAME", "DOTTED") or isinstance(self.last, Name)
        value = self.value_of_choice()
        is_bare = is_bare and start_of(self.last) == value  # not a word in the statics
        return is_bare and value is not None and value < place and _STATIC.match(text, place) is not None

    def drop_from(self, place: int) -> None:
        """Drops the values that begin at a place, or after it."""
        self.drop(self._count_before(place))

    def _count_before(self, place: int) -> int:
        from lark import Tree

        count = len(self.values)
        while count and not isinstance(self.values[count - 1], Tree) and start_of(self.values[count - 1]) >= place:
            count -= 1
        return count

    def open_brackets(self) -> list[int]:
        """Returns the indices of the brackets that are not closed, outer before inner. The parser may not yet have made
        a node of what they contain."""
        brackets: list[int] = []
        for index, value in enumerate(self.values):
            kind = terminal(value)
            if kind in _OPENERS:
                brackets.append(index)
            elif kind in _CLOSERS and brackets:
                brackets.pop()
        return brackets

    def open_braces(self) -> list[int]:
        """Returns the indices of the braces that are not closed, outer before inner."""
        return [index for index in self.open_brackets() if terminal(self.values[index]) == "LBRACE"]

    def brace_around(self) -> int | None:
        """Returns the place of the innermost open brace."""
        braces = self.open_braces()
        return self.values[braces[-1]].start_pos if braces else None

    def bracket_around(self) -> str:
        """Returns the innermost open bracket; empty if there is none."""
        brackets = self.open_brackets()
        return str(self.values[brackets[-1]]) if brackets else ""

    def is_open(self, opener: int) -> bool:
        """Returns whether the parser is in the bracket at a place."""
        return any(terminal(value) in _OPENERS and value.start_pos == opener for value in self.values)

    def cut(self, size: int) -> list[Any]:  # Any: tokens and nodes
        """Keeps the first values, and the complete statements or items after them. Returns the others."""
        from lark import Tree

        if size < len(self.values) and isinstance(self.values[size], Tree):
            size += 1
        return self.drop(size)

    def drop(self, size: int) -> list[Any]:  # Any: tokens and nodes
        """Keeps the first values. Returns the others."""
        dropped = self.values[size:]
        del self.values[size:]
        del self._run.parser_state.state_stack[size + 1 :]
        return dropped

    def feed(self, terminals: Iterable[tuple[str, str]], start: int, end: int | None = None) -> None:
        """Feeds tokens of some terminals and texts, which stand for a text."""
        from lark import Token

        for kind, text in terminals:
            self.feed_token(Token(kind, text, start_pos=start, end_pos=start if end is None else end))

    def feed_token(self, token: Token) -> None:
        self._run.parser_state.feed_token(token)


def terminal(value: object) -> str | None:
    """Returns the terminal of a token; None for anything else."""
    return getattr(value, "type", None) if isinstance(value, str) else None
