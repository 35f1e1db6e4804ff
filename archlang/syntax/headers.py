"""Reads the header of a block, a model or an extern in pieces, so that a mistake costs only its parameter or clause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from archlang.syntax.tokens import CLAUSE_WORDS, OPENERS, closers
from archlang.syntax.units import is_first, is_word

if TYPE_CHECKING:
    from lark import Token

    from archlang.syntax.feed import Feed

_LISTS = ("LPAR", "LSQB")
_BRACKETS = {"[": "LSQB", "(": "LPAR", "]": "RSQB", ")": "RPAR"}
# Signs in place of `->`.
_ARROWS = ("->", ":", "-", "=", "<-")


def _is_clause(tokens: list[Token], index: int) -> bool:
    token, following = tokens[index], tokens[index + 1 : index + 2]
    is_free = following not in ([":"], ["="], [","])
    return token in CLAUSE_WORDS and is_free and (is_first(tokens, index) or token in ("where", "python"))


def _begins_parameter(tokens: list[Token], index: int) -> bool:
    return is_word(tokens[index]) and tokens[index + 1 : index + 2] in ([":"], ["="])


def _sections(tokens: list[Token]) -> Iterator[tuple[str, list[Token]]]:
    """Cuts the tokens after the name of a header into lists (`[` or `(`), the result (`->`), clauses, and what is none
    of them; yields the kind and the tokens of each."""
    pairs = closers(tokens, _LISTS)
    start, kind, index = 0, "", 0
    while index < len(tokens):
        token, is_open = tokens[index], kind in ("->", "clause")
        end = pairs.get(index, index) + 1
        begun = str(token) if token in ("(", "[") and not is_open else ""
        if begun and end == index + 1:
            end = _end_of_list(tokens, index)
        elif not begun and _is_clause(tokens, index):
            begun = "clause"
        elif not begun and (token == "->" or (token in _ARROWS and start == index)):
            begun = "->"
        if begun and index > start:
            yield kind, tokens[start:index]
        if begun:
            start, kind = index, begun
        if begun in ("[", "("):
            yield begun, tokens[index:end]
            start, kind = end, ""
        index = end
    if start < index:
        yield kind, tokens[start:]


def _end_of_list(tokens: list[Token], start: int) -> int:
    """Returns where a list that is not closed ends: after another bracket, or before what cannot stand in it."""
    pairs = closers(tokens, _LISTS)
    index = start + 1
    while index < len(tokens):
        token = tokens[index]
        if token in (")", "]"):
            return index + 1
        begins_inputs = tokens[start] == "[" and token == "(" and tokens[index + 2 : index + 3] == [":"]
        if token == "->" or begins_inputs or (is_first(tokens, index) and _is_clause(tokens, index)):
            break
        index = pairs.get(index, index) + 1
    return index


class Header:
    """Feeds the header of an item to a parser."""

    def __init__(self, feed: Feed, tokens: list[Token], has_body: bool) -> None:
        self._feed = feed
        self._stack = feed.stack
        self._tokens = tokens
        self._is_extern = not has_body

    def read(self) -> None:
        """Reads the words and the name, then piece by piece, and completes what is missing."""
        count = 2 if self._tokens[0] == "extern" else 1
        for token in self._tokens[:count]:
            self._stack.feed(token)
        before, rest, place = self._tokens[count - 1], self._tokens[count:], self._tokens[count - 1].end_pos or 0
        if rest and rest[0].line == before.line and is_word(rest[0]) and rest[0] not in CLAUSE_WORDS:
            self._feed.feed(rest[:1], ("LSQB", "LPAR", "ARROW", "PYTHON"))
            rest = rest[1:]
        else:
            self._report_missing(rest)
        if len(self._stack.values) == count:
            self._stack.put("NAME", "", place, place)
        for kind, tokens in _sections(rest):
            if kind in ("[", "("):
                self._read_list(kind, tokens)
            elif kind == "->":
                self._read_result(tokens)
            elif kind:
                self._read_clause(tokens)
            else:
                self._report_missing(tokens)
        if self._stack.way_to(end := "$END" if self._is_extern else "LBRACE"):
            self._reach(end, [])

    def _reach(self, kind: str, tokens: list[Token]) -> bool:
        """Puts what is missing before some tokens, the first of which has a kind; returns whether they can follow."""
        way = self._stack.way_to(kind)
        if way is None or (way and not self._feed.mistakes):
            self._report_missing(tokens)
        place = tokens[0].start_pos or 0 if tokens else self._tokens[-1].end_pos or 0
        self._stack.complete(kind, place)
        return self._stack.accepts(kind, settles=True)

    def _report_missing(self, tokens: list[Token]) -> None:
        before = self._feed.before(tokens[0]) if tokens else self._tokens[-1]
        if tokens and before.line == tokens[0].line:
            self._feed.report_unexpected(tokens, 0)
        else:
            self._feed.report_incomplete([before])

    def _read_list(self, opener: str, tokens: list[Token]) -> None:
        if not self._reach(_BRACKETS[opener], tokens):
            return
        first, last, closer = tokens[0], tokens[-1], OPENERS[opener]
        self._stack.feed(first)
        is_inner = any(place > 0 and end == len(tokens) - 1 for place, end in closers(tokens, _LISTS).items())
        is_closed = last in (")", "]") and not is_inner
        for number, part in enumerate(_parts(tokens[1 : len(tokens) - is_closed])):
            self._read_parameter(part, _BRACKETS[closer], number == 0)
        if is_closed and last != closer:
            self._feed.report_unexpected([last], 0)
        if not is_closed and not self._feed.has_mistake(last):
            self._feed.report_bracket(first)
        self._reach(_BRACKETS[closer], tokens[-1:])
        end = last.end_pos or 0
        self._stack.put(_BRACKETS[closer], closer, end - is_closed, end)

    def _read_parameter(self, tokens: list[Token], closer: str, is_first: bool) -> None:
        start = tokens[0].start_pos or 0
        if tokens[0] == ",":
            if self._reach("COMMA", tokens):
                self._stack.feed(tokens[0])
            if not (tokens := tokens[1:]):
                return
        elif not is_first:
            if self._stack.accepts("COMMA"):
                self._report_missing(tokens)
            self._reach("COMMA", tokens)
            self._stack.put("COMMA", ",", start, start)
        size = len(self._stack.values)
        if not self._feed.feed(tokens, (closer,), settles=False) or self._feed.report_odd_bracket(tokens):
            self._stack.cut(size)
            self._stack.put("NAME", "", start, start)

    def _read_result(self, tokens: list[Token]) -> None:
        if not self._reach("ARROW", tokens):
            return
        size, place = len(self._stack.values), tokens[0].start_pos or 0
        if tokens[0] != "->":
            self._feed.report_unexpected(tokens, 0)
            tokens = tokens[2:] if tokens[1:2] == [">"] else tokens[1:]
            self._stack.put("ARROW", "->", place, place)
        if not tokens or not self._feed.feed(tokens, ("PYTHON", "LBRACE", "WHERE"), settles=False):
            self._stack.cut(size)
            self._stack.put("ARROW", "->", place, place)
            self._stack.put("NAME", "", place, place)

    def _read_clause(self, tokens: list[Token]) -> None:
        if self._stack.way_to("WHERE"):  # each signature can have this clause
            self._reach("WHERE", tokens)
        if not self._stack.accepts(tokens[0].type, settles=True) and self._feed.mistakes:
            self._feed.silence(tokens[0])  # it may belong to an item whose header is missing
        size = len(self._stack.values)
        is_read = self._feed.feed(tokens, ("PYTHON", "LBRACE", "$END"))
        if not is_read and not (self._is_extern and self._feed.put_rest(tokens)):
            self._feed.put_missing_line(size, tokens, self._is_extern)


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yields the parameters of a list, each with the comma before it."""
    pairs, start, index = closers(tokens, _LISTS), 0, 0
    while index < len(tokens):
        is_next = is_first(tokens, index) and _begins_parameter(tokens, index) and tokens[index - 1] != ","
        if index > start and (tokens[index] == "," or is_next):
            yield tokens[start:index]
            start = index
        index = pairs.get(index, index) + 1
    if tokens[start:]:
        yield tokens[start:]
