"""Feeds the tokens of an item to the parser, unit by unit, and reports what it cannot read."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

from archlang.errors import Diagnostic, Source, Span
from archlang.errors.log import MOST_ERRORS
from archlang.syntax import mistakes
from archlang.syntax.builder import LineTaken, TreeBuilder
from archlang.syntax.explain import explain, explain_end
from archlang.syntax.grammar import kinds
from archlang.syntax.place import Place
from archlang.syntax.stack import ParserStack
from archlang.syntax.tokens import CLAUSE_WORDS, unclosed
from archlang.syntax.units import OddBrace

if TYPE_CHECKING:
    from lark import Token

# Words of clauses that may stand on lines of their own.
_CLAUSES_OF_PARTS = ("claims", "best", "from", "at")


class Feed:
    """The tokens of an item, and the stack of the parser that reads them. A line has one mistake."""

    def __init__(self, source: Source, tokens: list[Token], builder: TreeBuilder, start: str = "start") -> None:
        self.mistakes: list[Diagnostic] = []
        self.stack = ParserStack(builder, start)
        self._builder = builder
        self._source = source
        self._tokens = tokens
        self._starts = [token.start_pos or 0 for token in tokens]
        self._lines: set[int] = set()
        self._failed = 0
        self._is_recipe = False

    def feed(self, tokens: list[Token], follow: tuple[str, ...], settles: bool = True) -> bool:
        """Feeds the tokens of a unit, which one of some terminals can follow; reports a mistake, and returns whether
        there is none."""
        from lark import UnexpectedToken

        self._failed = len(tokens)
        try:
            for index, token in enumerate(tokens):
                begins_line = index > 0 and tokens[index - 1].line != token.line
                is_clause = begins_line and self._is_recipe and token in _CLAUSES_OF_PARTS
                if is_clause and not self.stack.accepts(kinds()[token]):
                    self._failed = index
                    self.report_incomplete(tokens[:index])
                    return False
                if token == ";":
                    if len(self.mistakes) <= MOST_ERRORS:
                        self.mistakes.append(explain(self._place(tokens, index)))
                    continue
                try:
                    self.stack.feed(token)
                except UnexpectedToken:
                    self._failed = index
                    self.report_unexpected(tokens, index)
                    return False
            if any(self.stack.accepts(kind, settles) for kind in follow):
                return True
        except LineTaken:
            pass
        self.report_incomplete(tokens)
        return False

    # Mistakes

    def report_unexpected(self, tokens: list[Token], index: int) -> None:
        """Reports a token of a unit that cannot follow the tokens before it."""
        line = tokens[index].line or 0
        if line not in self._lines and len(self.mistakes) <= MOST_ERRORS:
            self._report(explain(self._place(tokens, index)))
        self._lines.add(line)

    def silence(self, token: Token) -> None:
        """Reports nothing more in the line of a token."""
        self._lines.add(token.line or 0)

    def has_mistake(self, token: Token) -> bool:
        """Returns whether a mistake is reported in the line of a token."""
        return token.line in self._lines

    def report_incomplete(self, tokens: list[Token], phrases: tuple[str, ...] = ()) -> None:
        """Reports that a unit ends too early."""
        if len(self.mistakes) > MOST_ERRORS or self.report_odd_bracket(tokens):
            return
        following = self._after(tokens[-1])
        if following is not None and following.line == tokens[-1].line and not phrases:
            self.report_unexpected([*tokens, following], len(tokens))
            return
        self._report(explain_end(self._place(tokens, len(tokens)), phrases))

    def report_odd_bracket(self, tokens: list[Token]) -> bool:
        """Reports the last bracket of a unit that is not closed; returns whether there is one."""
        if opened := unclosed(tokens):
            self.report_bracket(opened[-1])
        return bool(opened)

    def report_bracket(self, opener: Token) -> None:
        if opener.start_pos == opener.end_pos:
            return  # one that the text lacks
        inside = self._inside(opener)
        noticed = self._after(inside[-1])
        place = self.span(noticed) if noticed is not None else self._end_of_text()
        self._report(mistakes.unclosed_bracket(self.span(opener), place, inside[-1].end_pos or 0))

    def _inside(self, opener: Token) -> list[Token]:
        """Returns a bracket that is not closed, and the tokens that belong into it: on its line, and on deeper lines
        after a `,`."""
        index = bisect_left(self._starts, opener.start_pos or 0)
        opener = self._tokens[index]  # that of the stack may have no line
        line = next(token for token in self._tokens if token.line == opener.line)
        inside, depth = [opener], 0
        for place, token in enumerate(self._tokens[index + 1 :], index + 1):
            following = self._tokens[place + 1 : place + 2]
            is_clause = token in CLAUSE_WORDS and following not in ([":"], ["="])
            goes_on = inside[-1] in (",", "(", "[") and (token.column or 0) > (line.column or 0) and not is_clause
            is_input = opener == "[" and token == "(" and self._tokens[place + 2 : place + 3] == [":"]
            depth += (token in ("(", "[")) - (token in (")", "]"))
            is_end = depth < 0 or token in ("{", "}") or (depth == 0 and token == "->") or is_input
            if is_end or (token.line != inside[-1].line and not goes_on):
                break
            inside.append(token)
        return inside

    def _report_odd(self, odd: list[OddBrace]) -> None:
        for each in odd:
            if each.brace == ":":
                self._report(mistakes.colon_for_brace(self.span(each.brace)))
            elif each.brace == "}":
                self._report(mistakes.unmatched_closer(self.span(each.brace), None))
            else:
                noticed = self._end_of_text() if each.noticed is None else self.span(each.noticed)
                self._report(mistakes.unclosed_bracket(self.span(each.brace), noticed))

    def _report(self, mistake: Diagnostic) -> None:
        line = mistake.span.line
        if line not in self._lines and len(self.mistakes) <= MOST_ERRORS:
            self._lines.add(line)
            self.mistakes.append(mistake)

    def _place(self, tokens: list[Token], index: int) -> Place:
        token = tokens[index] if index < len(tokens) else self._after(tokens[-1])
        after = self._after(tokens[-1])
        return Place(self._source, tokens[:index], token, tokens[index:], after, self.stack, self._is_recipe)

    def before(self, token: Token) -> Token:
        return self._tokens[max(0, bisect_left(self._starts, token.start_pos or 0) - 1)]

    def _after(self, token: Token) -> Token | None:
        index = bisect_left(self._starts, token.end_pos or 0)
        return self._tokens[index] if index < len(self._tokens) else None

    def _end_of_text(self) -> Span:
        end = self._tokens[-1].end_pos or 0
        return Span(self._source, end, end)

    def span(self, token: Token) -> Span:
        return Span(self._source, token.start_pos or 0, token.end_pos or 0)

    def put_rest(self, tokens: list[Token]) -> bool:
        """Puts a line in place of the lines of a unit from the one that cannot be read, if what stands before it is
        complete; returns whether it is."""
        index = self._failed
        is_line = 0 < index < len(tokens) and tokens[index - 1].line != tokens[index].line
        is_deeper = is_line and (tokens[index].column or 0) > (tokens[0].column or 0)
        if not is_line or is_deeper or not self.stack.accepts("MISSING_LINE", settles=True):
            return False
        self.put_line(tokens[index:])
        return True

    def put_missing_line(self, size: int, tokens: list[Token], is_line: bool = True) -> None:
        """Puts a line in place of tokens that cannot be read."""
        self.stack.cut(size)
        if is_line and self.stack.accepts("MISSING_LINE", settles=True):
            self.put_line(tokens)

    def put_line(self, tokens: list[Token]) -> None:
        start, end = tokens[0].start_pos or 0, tokens[-1].end_pos or 0
        self.stack.put("MISSING_LINE", self._source.text[start:end], start, end)
        self.stack.accepts("MISSING_LINE", settles=True)
