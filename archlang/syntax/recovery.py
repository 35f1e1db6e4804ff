"""Reads an item with mistakes unit by unit: a unit that cannot be read costs no other one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archlang.errors import Span
from archlang.errors.names import did_you_mean
from archlang.syntax import mistakes
from archlang.syntax.explain import explain
from archlang.syntax.feed import Feed
from archlang.syntax.headers import Header
from archlang.syntax.mistakes import Expected
from archlang.syntax.place import Place
from archlang.syntax.stack import ParserStack
from archlang.syntax.tokens import BINDERS, ITEM_WORDS, PART_WORDS, RESERVED, TABLE_WORDS
from archlang.syntax.units import FOREIGN_ELSE, TokenGroup, cut, is_word

if TYPE_CHECKING:
    from lark import Token

_LINE = ("MISSING_LINE",)


class Recovery(Feed):
    """Reads the tokens of one item."""

    def read(self) -> list[Any]:  # Any: items
        """Returns the item, or none if its first word begins no item."""
        from lark import UnexpectedToken

        try:
            self._read_item()
            items: list[Any] = self.stack.end()
        except UnexpectedToken:  # the item is no item after all
            if not self.mistakes:
                self._report(explain(self._place(self._tokens, 0)))
            return []
        return items

    def _read_item(self) -> None:
        (header, *others), odd = cut(self._tokens)
        word = self._item_word(header)
        self._is_recipe = word in ("recipe", "table")
        if not word:
            self.report_unexpected(self._tokens, 0)
            return
        if word == "use":
            self.feed(header.tokens, ("$END",))
        elif self._is_recipe:
            if not self.feed(header.tokens, ("LBRACE",)):
                self.stack.cut(1)
                self.stack.complete("LBRACE", header.tokens[-1].end_pos or 0)
        else:
            if word == "extern" and not self.feed(header.tokens[:2], ("NAME",)):
                return
            self.stack.cut(0)
            Header(self, header.tokens, word != "extern").read()
        if word in ITEM_WORDS[1:] and word != "extern":
            self._read_item_body(header, others)
        elif header.opener is not None:
            self.report_unexpected([*header.tokens, header.opener], len(header.tokens))
        elif others:
            self.report_unexpected(others[0].tokens, 0)
        self._report_odd(odd)

    def read_expression(self) -> Any:  # Any: an expression
        """Returns the value that the tokens are; None if they are none."""
        if not self._tokens:
            end = Span(self._source, len(self._source.text), len(self._source.text))
            self.mistakes.append(mistakes.unexpected_end(end, Expected(("a value",))))
        return self.stack.end() if self._tokens and self.feed(self._tokens, ("$END",)) else None

    def _item_word(self, header: TokenGroup) -> str:
        """Returns the word of the item, which may be misspelt or missing; empty if the tokens are no item."""
        from lark import Token

        first = header.first
        is_line = first == "task" and header.opener is None  # of a recipe
        if first in ITEM_WORDS and header.tokens and not is_line:
            return str(first)
        near = did_you_mean(first, ITEM_WORDS) if is_word(first) else None
        has_name = len(header.tokens) > 1 and is_word(header.tokens[1])
        body = header.body[0].first if header.body else None
        if near is None and header.opener is not None:
            near = "block"
            if body in PART_WORDS:
                near = "table" if body in TABLE_WORDS else "recipe"
            if not header.tokens and body is not None:
                self._report(mistakes.header_missing(self.span(body), near))
        if near is None or (header.opener is None and not (near in ("use", "extern") and has_name)):
            return ""
        if header.tokens or body is None:
            self.report_unexpected(header.tokens or [first], 0)
        start, end = first.start_pos or 0, first.end_pos or 0
        word = Token(near.upper(), near, start, first.line, first.column, None, None, end)
        header.tokens = [word, *header.tokens[1:]] if header.tokens else [word]
        return near

    def _read_item_body(self, header: TokenGroup, others: list[TokenGroup]) -> None:
        if header.opener is None:
            self._report_missing_brace(header.tokens)
            end = header.tokens[-1].end_pos or 0
            for kind, text in (("LBRACE", "{"), ("MISSING_LINE", ""), ("RBRACE", "}")):
                self.stack.put(kind, text, end, end)
            return
        if not header.opener:
            self._report_missing_brace(header.tokens)
        self._read_body(header, others)

    def _report_missing_brace(self, tokens: list[Token]) -> None:
        self.report_incomplete(tokens, ("`{`",) if self.stack.accepts("LBRACE") else ())

    # Bodies

    def _read_body(self, unit: TokenGroup, others: list[TokenGroup] | None = None) -> None:
        opener, closer = unit.opener, unit.closer
        assert opener is not None, "the unit has a body"
        assert closer is not None, "each body is closed"
        self.stack.put("LBRACE", "{", opener.start_pos or 0, opener.end_pos or 0)
        for index, each in enumerate(unit.body):
            if self._is_recipe:
                self._read_part(each)
                continue
            self._read_statement(each, any(map(_is_else, unit.body[index + 1 : index + 2])))
        written = ([token for token in group.tokens if token] for group in others or ())
        if after := next(filter(None, written), None):
            # Lines whose header may be missing.
            place = Place(self._source, [], after[0], after, None, ParserStack(self._builder), is_in_recipe=False)
            self._report(explain(place))
        if not closer and self.stack.accepts("MISSING_LINE"):
            self.stack.put("MISSING_LINE", "", closer.start_pos or 0, closer.start_pos or 0)
        self.stack.put("RBRACE", "}", closer.start_pos or 0, closer.end_pos or 0)

    def _read_statement(self, unit: TokenGroup, is_followed: bool) -> None:
        """Reads a statement; one that `is_followed` by an `else` is no whole one."""
        size = len(self.stack.values)
        tokens = unit.tokens
        if unit.opener is None:
            if not self.feed(tokens, _LINE) and not self.put_rest(tokens):
                self.stack.cut(size)
                self._put_statement(tokens)
            return
        self._read_header(unit, size, is_followed)
        self._read_body(unit)
        if not is_followed:
            self.stack.accepts("MISSING_LINE", settles=True)

    def _read_header(self, unit: TokenGroup, size: int, is_followed: bool) -> None:
        """Reads the header of a body in a body; an `if` or `else` that cannot be read stays one."""
        tokens, opener = unit.tokens, unit.opener
        assert opener is not None, "the unit has a body"
        start, end = unit.first.start_pos or 0, opener.start_pos or 0
        is_branch = _is_else(unit) and self.stack.accepts("ELSE", settles=True)
        size = len(self.stack.values) if is_branch else size
        if is_branch and tokens and tokens[0] != "else":
            tokens = self._with_else(tokens)
        if not tokens:
            self._report(explain(self._place([opener], 0)))
        is_read = bool(tokens) and self.feed(tokens, ("LBRACE",))
        if tokens and not opener:
            self._report_missing_brace(unit.tokens)
        if is_read and opener:
            return
        self.stack.cut(size)
        if is_branch:
            self.stack.put("ELSE", "else", start, end)
        if (is_followed or len(tokens) > 1) if is_branch else (is_followed or tokens[:1] == ["if"]):
            self.stack.put("IF", "if", start, end)
            self.stack.put("MISSING", self._source.text[start:end], start, end)
        elif not is_branch:
            last = tokens[-1].end_pos or 0 if tokens else start
            self.stack.put("MISSING_LINE", self._source.text[start:end].rstrip(), start, last)

    def _with_else(self, tokens: list[Token]) -> list[Token]:
        from lark import Token

        first, is_chained = tokens[0], tokens[0] in FOREIGN_ELSE
        self._report(mistakes.foreign_else(self.span(first), is_chained))
        words = ("else", "if") if is_chained else ("else",)
        place = (first.start_pos or 0, first.line, first.column, None, None, first.end_pos)
        return [*(Token(word.upper(), word, *place) for word in words), *tokens[1:]]

    def _read_part(self, unit: TokenGroup) -> None:
        size = len(self.stack.values)
        tokens = unit.tokens
        if len(tokens) > 1 and tokens[-1] == "}":
            tokens = tokens[:-1]  # it belongs to a brace that has been reported
        if not self.feed(tokens, _LINE) and not self.put_rest(tokens):
            self.put_missing_line(size, tokens)

    def _put_statement(self, tokens: list[Token]) -> None:
        """Puts a statement without its value, so that its name is known, or a line."""
        count = 0
        if len(tokens) > 1 and is_word(tokens[0]) and tokens[1] in BINDERS:
            count = 2
        elif tokens[0] in ("let", "loss") and tokens[2:3] == ["="]:
            count = 3
        elif tokens[0] in ("return", "emit"):
            count = 1
        size = len(self.stack.values)
        if count and all(self._can_feed(token) for token in tokens[:count]) and self.stack.accepts("MISSING"):
            end = tokens[-1].end_pos or 0
            start = tokens[count].start_pos or 0 if len(tokens) > count else end
            self.stack.put("MISSING", self._source.text[start:end], start, end)
            if self.stack.accepts("MISSING_LINE", settles=True):
                return
        self.stack.cut(size)
        self.put_line(tokens)

    def _can_feed(self, token: Token) -> bool:
        from lark import UnexpectedToken

        try:
            self.stack.feed(token)
        except UnexpectedToken:
            return False
        return True


def _is_else(unit: TokenGroup) -> bool:
    if not unit.tokens or unit.opener is None:
        return not unit.tokens and not unit.opener
    first = unit.tokens[0]
    if first == "else" or first in FOREIGN_ELSE:
        return True
    is_alone = len(unit.tokens) == 1 or unit.tokens[1] == "if"
    return (
        is_alone
        and is_word(first)
        and first not in RESERVED
        and ("else".startswith(first) or did_you_mean(first, ("else",)) is not None)
    )
