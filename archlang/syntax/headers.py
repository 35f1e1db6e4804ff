"""Reads the header of a block, a model or an extern in pieces, so that a mistake costs only its parameter or clause."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from archlang.syntax.tokens import CLAUSE_WORDS, CLOSERS, OPENERS
from archlang.syntax.units import is_first, is_word

if TYPE_CHECKING:
    from lark import Token

    from archlang.syntax.feed import Feed

_BINDS = (":", "=")
_KINDS = ("int", "float", "bool", "symbol")
_BRACKETS = {"[": "LSQB", "(": "LPAR", "]": "RSQB", ")": "RPAR"}
# Signs in place of `->`.
_ARROWS = (":", "-", "=", "<-")


class _Piece(NamedTuple):
    """The tokens of a bracket that is opened (`(`, `[`) or closed (`)`), a parameter, a `,`, a `result` or a `clause`.
    The token of an opening bracket that the text lacks is the next one."""

    kind: str
    tokens: list[Token]


def _pieces(tokens: list[Token]) -> Iterator[_Piece]:
    """Yields the pieces of a header after its name."""
    current = _Piece("", [])
    bracket, depth, column, openers = "", 0, 1, _openers_of(tokens)
    for index, token in enumerate(tokens):
        following = tokens[index + 1] if index + 1 < len(tokens) else None
        first = is_first(tokens, index)
        begins = is_word(token) and following in _BINDS
        if bracket and depth and first and (begins or token in (")", "]")) and (token.column or 0) <= column:
            depth = 0  # a bracket of the parameter before is not closed
        is_clause = (
            token in CLAUSE_WORDS and following not in (*_BINDS, ",") and (first or token in ("where", "python"))
        )
        if bracket and ((token == "->" and depth == 0) or (is_clause and first)):
            bracket = ""
        opener = openers[index]
        if not bracket and current.kind not in ("result", "clause") and (begins or (token == ":" and opener == "[")):
            bracket = opener or ("[" if index + 2 < len(tokens) and tokens[index + 2] in _KINDS else "(")
            yield from (current, _Piece(bracket, [token]))
            current = _Piece("parameter", [])
        is_static = following == "=" or (index + 2 < len(tokens) and tokens[index + 2] in _KINDS)
        if bracket == "[" and depth == 0 and first and begins and opener == "(" and not is_static:
            yield from (current, _Piece("(", [token]))  # `](` is missing
            bracket, current = "(", _Piece("parameter", [])
        if bracket == "[" and depth == 0 and token == "(" and tokens[index + 2 : index + 3] == [":"]:
            yield from (current, _Piece("(", [token]))  # `]` is missing
            bracket, current = "(", _Piece("parameter", [])
            continue
        if bracket and depth == 0 and (token in (",", ")", "]") or (first and begins and current.tokens)):
            yield current
            current = _Piece("parameter", [])
            if token in (",", ")", "]"):
                yield _Piece("," if token == "," else ")", [token])
                bracket = bracket if token == "," else ""
                continue
        if bracket:
            depth += (token in OPENERS) - (token in (")", "]", "}"))
            if not current.tokens:
                column = token.column if first and token.column else column
        elif token in ("[", "(") and current.kind not in ("result", "clause"):
            yield current
            yield _Piece(token, [token])
            bracket, depth, current = str(token), 0, _Piece("parameter", [])
            continue
        elif token == "->" or is_clause or (token in _ARROWS and current.kind not in ("result", "clause")):
            yield current
            current = _Piece("clause" if is_clause else "result", [])
        current.tokens.append(token)
    yield current


def _openers_of(tokens: list[Token]) -> list[str]:
    """Returns for each token the opening bracket that the tokens from it on lack, which close it; empty if none."""
    closers: list[str] = []
    openers = []
    for token in reversed(tokens):
        if token in (")", "]"):
            closers.append(str(token))
        elif token in ("(", "[") and closers:
            closers.pop()
        openers.append(CLOSERS[closers[-1]] if closers else "")
    return openers[::-1]


class Header:
    """Feeds the header of an item to a parser."""

    def __init__(self, feed: Feed, tokens: list[Token], has_body: bool) -> None:
        self._feed = feed
        self._stack = feed.stack
        self._tokens = tokens
        self._end = tokens[-1].end_pos or 0
        self._is_extern = not has_body
        self._starts = [token.start_pos or 0 for token in tokens]
        # The size of the stack before the last parameter, or after its bracket.
        self._last = 0

    def read(self) -> None:
        """Reads the words and the name, then piece by piece, and completes what is missing."""
        count = self._read_words()
        before, rest, place = self._tokens[count - 1], self._tokens[count:], self._tokens[count - 1].end_pos or 0
        if rest and rest[0].line == before.line and is_word(rest[0]) and rest[0] not in CLAUSE_WORDS:
            self._feed.feed(rest[:1], ("LSQB", "LPAR", "ARROW", "PYTHON"))
            rest = rest[1:]
        elif rest and rest[0].line == before.line:
            self._feed.report_unexpected(self._tokens, count)
        else:
            self._feed.report_incomplete(self._tokens[:count])
        if len(self._stack.values) == count:
            self._stack.put("NAME", "", place, place)
        for piece in _pieces(rest):
            if piece.tokens:
                self._read_piece(piece)
        self._complete()

    def _read_words(self) -> int:
        words = 2 if self._tokens[0] == "extern" else 1
        for token in self._tokens[:words]:
            self._stack.feed(token)
        return words

    def _read_piece(self, piece: _Piece) -> None:
        place = piece.tokens[0].start_pos or 0
        if piece.kind in ("[", "("):
            self._open(piece)
        elif piece.kind == "parameter":
            self._read_parameter(piece.tokens, place)
        elif piece.kind == ",":
            if self._stack.accepts("COMMA"):
                self._stack.feed(piece.tokens[0])
        elif piece.kind == ")":
            self._close(piece.tokens[0])
        elif piece.kind == "result":
            self._read_result(piece.tokens, place)
        elif piece.kind == "clause":
            self._read_clause(piece.tokens, place)
        else:
            self._feed.feed(piece.tokens, ())

    def _open(self, piece: _Piece) -> None:
        kind = _BRACKETS[piece.kind]
        token = piece.tokens[0]
        is_missing = token != piece.kind
        if piece.kind == "(" and self._stack.bracket_around() == "[":
            self._complete_bracket(token.start_pos or 0)
        elif is_missing and not self._feed.mistakes and (before := self._before(token)).line != token.line:
            self._feed.report_incomplete([before])
        elif not self._stack.accepts(kind) or (is_missing and not self._feed.mistakes):
            self._feed.report_unexpected(piece.tokens, 0)
        if self._stack.accepts(kind):
            end = token.start_pos or 0 if is_missing else token.end_pos or 0
            self._stack.put(kind, piece.kind, token.start_pos or 0, end)
            self._last = len(self._stack.values)

    def _read_parameter(self, tokens: list[Token], place: int) -> None:
        bracket = self._stack.bracket_around()
        if not bracket:
            self._feed.report_unexpected(tokens, 0)
            return
        closer = _BRACKETS[OPENERS[bracket]]
        if not self._stack.accepts("NAME") and self._stack.accepts("COMMA"):
            self._feed.report_incomplete([self._before(tokens[0])])
            self._stack.cut(self._last)  # the parameter before may be cut, too
            self._put_parameter(bracket, place)
            self._stack.put("COMMA", ",", place, place)
        self._stack.accepts("NAME", settles=True)
        size = self._last = len(self._stack.values)
        if not self._feed.feed(tokens, (closer,), settles=False) or self._feed.report_odd_bracket(tokens):
            self._stack.cut(size)
            self._put_parameter(bracket, place)

    def _put_parameter(self, bracket: str, place: int) -> None:
        rest = [("EQUAL", "="), ("MISSING", "")] if bracket == "[" else [("COLON", ":"), ("NAME", "")]
        if self._stack.accepts("COMMA"):
            self._stack.put("COMMA", ",", place, place)
        for kind, text in (("NAME", ""), *rest):
            self._stack.put(kind, text, place, place)

    def _close(self, token: Token) -> None:
        bracket = self._stack.bracket_around()
        if not bracket or OPENERS[bracket] != token:
            self._feed.report_unexpected([token], 0)
        if bracket:
            self._close_bracket(token.start_pos or 0, token.end_pos or 0)

    def _close_bracket(self, start: int, end: int) -> None:
        bracket = self._stack.bracket_around()
        closer = _BRACKETS[OPENERS[bracket]]
        if not self._stack.accepts(closer):
            self._put_parameter(bracket, start)
        self._stack.put(closer, OPENERS[bracket], start, end)

    def _read_result(self, tokens: list[Token], place: int) -> None:
        self._complete_bracket(place)
        if not self._stack.accepts("ARROW", settles=True):
            self._feed.report_unexpected(tokens, 0)
            return
        size = len(self._stack.values)
        if tokens[0] != "->":
            self._feed.report_unexpected(tokens, 0)
            tokens = tokens[2:] if tokens[1:2] == [">"] else tokens[1:]
            self._stack.put("ARROW", "->", place, place)
        if not tokens or not self._feed.feed(tokens, ("PYTHON", "LBRACE", "WHERE"), settles=False):
            self._stack.cut(size)
            self._put_result(place)

    def _read_clause(self, tokens: list[Token], place: int) -> None:
        self._complete_signature(place)
        if not self._stack.accepts(tokens[0].type, settles=True) and self._feed.mistakes:
            self._feed.silence(tokens[0])  # it may belong to an item whose header is missing
        size = len(self._stack.values)
        is_read = self._feed.feed(tokens, ("PYTHON", "LBRACE", "$END"))
        if not is_read and not (self._is_extern and self._feed.put_rest(tokens)):
            self._feed.put_missing_line(size, tokens, self._is_extern)

    def _complete_bracket(self, place: int) -> None:
        opener = self._stack.opener()
        if opener is not None:
            if not self._feed.has_mistake(self._tokens[max(0, bisect_left(self._starts, place) - 1)]):
                self._feed.report_bracket(opener)
            self._stack.cut(self._last)  # the last parameter may be cut, too
            self._put_parameter(str(opener), place)
            self._close_bracket(place, place)

    def _complete_signature(self, place: int) -> None:
        if self._stack.bracket_around() or self._stack.accepts("ARROW"):
            if not self._stack.bracket_around():
                self._feed.report_incomplete(
                    [each for each in self._tokens if (each.start_pos or 0) < place] or self._tokens[:1]
                )
            self._complete_bracket(place)
            if self._stack.accepts("ARROW"):
                self._put_result(place)

    def _put_result(self, place: int) -> None:
        self._stack.put("ARROW", "->", place, place)
        self._stack.put("NAME", "", place, place)

    def _complete(self) -> None:
        self._complete_signature(self._end)
        if self._is_extern and self._stack.accepts("PYTHON"):
            self._feed.report_incomplete(self._tokens)
            self._stack.put("PYTHON", "python", self._end, self._end)
            self._stack.put("STRING", '""', self._end, self._end)

    def _before(self, token: Token) -> Token:
        return self._tokens[max(0, bisect_left(self._starts, token.start_pos or 0) - 1)]
