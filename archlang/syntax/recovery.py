"""Reading a text with the grammar: after a mistake it goes on where the next statement or item begins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import MOST_ERRORS
from archlang.diagnostics.names import did_you_mean
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.builders import DEEPEST, TooDeep, TreeBuilder
from archlang.syntax.expected import Expected, expected
from archlang.syntax.grammar import callbacks, grammar, spellings
from archlang.syntax.outline import CLOSERS, RESERVED, STATEMENT_WORDS, Outline, Unclosed, Unmatched
from archlang.syntax.tree import Node

if TYPE_CHECKING:
    from lark import Token
    from lark.parsers.lalr_interactive_parser import InteractiveParser

# One more than is shown, so that the report knows that there are more.
_MOST = MOST_ERRORS + 1
_DEVIATION = "DEVIATION"
_MALFORMED_NUMBER = re.compile(r"[0-9][\w.]*")
_BINDERS = ("=", "<-")
_BINDER = re.compile(r"\s*(?:=(?!=)|<-)")
_WORD = re.compile(r"\w+")
_LINE_END = re.compile(r"[\r\n]|\Z")
# Words that stand in for a header that has a mistake, so that what is between its braces is read nevertheless.
_RECIPE = (("RECIPE", "recipe"), ("NAME", ""))
_TABLE = (("TABLE", "table"), ("NAME", ""))
_BLOCK = (("BLOCK", "block"), ("NAME", ""), ("ARROW", "->"), ("NAME", ""))
_STATEMENT = (("IF", "if"), ("NUMBER", "0"))


class Reader:
    """One reading of a text: `text` is the source's, or one of the same length with parts blanked out."""

    def __init__(self, source: Source, text: str, build: TreeBuilder, start: str, most: int = _MOST) -> None:
        self.mistakes: list[Diagnostic] = []
        # Where the mistakes are; what is there in the tree is not to be trusted.
        self.places: list[int] = []
        self._source = source
        self._text = text
        self._most = most
        self._run: InteractiveParser = grammar().parse_interactive(text, start=start)
        # One parser serves all texts; each text has its own builder of the tree.
        self._run.parser_state.parse_conf.callbacks = callbacks(build.rules)
        self._outline: Outline | None = None
        self._resumed = -1
        self._told: set[Unclosed | Unmatched] = set()

    def read(self) -> Any:  # Any: whatever the start rule becomes
        """What the start rule becomes of all that was understood; None if it cannot become anything."""
        from lark import UnexpectedCharacters, UnexpectedToken

        while len(self.mistakes) < self._most:
            try:
                return self._go()
            except UnexpectedCharacters as error:
                self._at_character(error.pos_in_stream or 0)
            except UnexpectedToken as error:
                if error.token.type == "$END":
                    self._at_end()
                elif not self._read_otherwise(error.token):
                    self._at_token(error.token)
            except TooDeep as error:
                self._tell(error.span.start, mistakes.nested_too_deep(error.span, DEEPEST))
                self._resume(error.span.end)
        self._finish()
        try:
            return self._go()
        except UnexpectedToken:
            return None

    def _go(self) -> Any:  # Any: whatever the start rule becomes
        return self._run.resume_parse()  # type: ignore[no-untyped-call]  # lark has no annotation there

    def tell_brackets(self) -> None:
        """Adds what is wrong with brackets and was not met while reading. Only a text with mistakes is looked at."""
        if self._outline is not None:
            for problem in self._outline.problems:
                if problem not in self._told and len(self.mistakes) < self._most:
                    self._tell_bracket(problem)

    def _read_otherwise(self, token: Token) -> bool:
        """The tables are those of LALR(1), so a state may accept what can follow a name elsewhere only: there the lexer
        takes the variable `reads` for the keyword, and `+-` for one sign. Then it is read as what it is."""
        from lark import Token

        end = token.end_pos or 0
        if token.type == _DEVIATION:
            token, end = Token("PLUS", "+", start_pos=token.start_pos, end_pos=end - 1), end - 1
        elif token.type in spellings() and token.isalpha() and token not in RESERVED:
            token = Token("NAME", str(token), start_pos=token.start_pos, end_pos=end)
        else:
            return False
        if token.type not in self._accepted():
            return False
        self._run.parser_state.feed_token(token)
        self._go_on(end)
        return True

    # What went wrong

    def _at_character(self, place: int) -> None:
        character = self._text[place]
        if character == '"':
            line_end = _LINE_END.search(self._text, place)
            end = line_end.start() if line_end else place + 1
            self._tell(place, mistakes.unterminated_string(self._span(place, end)))
            self._resume(end)
        elif number := _MALFORMED_NUMBER.match(self._text, place):
            self._tell(place, mistakes.malformed_number(self._span(*number.span())))
            self._resume(number.end())
        else:
            word = _WORD.match(self._text, place)
            end = word.end() if word else place + 1
            self._tell(place, mistakes.unknown_character(self._span(place, end)))
            if character == ";":
                # Between statements it is all that is wrong.
                self._go_on(end)
            else:
                self._resume(end)

    def _at_token(self, token: Token) -> None:
        place, end = token.start_pos or 0, token.end_pos or 0
        name = self._name_before()
        missing = self._value_missing(name) if name is not None and token in _BINDERS else None
        reserved = self._reserved(token)
        if token in CLOSERS and (unmatched := self._unmatched(place)) is not None:
            # Where a value is missing too, what follows makes no sense.
            is_extra = unmatched.opener is None and "NUMBER" not in self._accepted()
            self._tell_bracket(unmatched)
            if is_extra:
                self._go_on(end)
            else:
                self._resume(end)
        elif (unclosed := self._unclosed(place)) is not None:
            # An item that is taken for a statement fails at its second word.
            place = min(place, unclosed.noticed)
            self._tell_bracket(unclosed, self._span(place, end))
            self._resume(place)
        elif name is not None and missing is not None:
            self._tell(place, missing)
            self._resume(name.start)
        elif reserved is not None:
            self._tell(reserved.start, mistakes.reserved_word(reserved))
            self._resume(end)
        else:
            self._tell(place, self._unexpected(token, name))
            # A word that begins statements, in the middle of a line, begins none.
            self._resume(place if self._shape().is_first(place) else end)

    def _unexpected(self, token: Token, name: Span | None) -> Diagnostic:
        wanted = self._expected()
        if name is not None and set(wanted.phrases) <= {"`=`", "`<-`"}:
            near = did_you_mean(name.text, (*STATEMENT_WORDS, "else"))
            if near is not None:
                return mistakes.misspelt_keyword(name, name.text, near)
        span = self._span(token.start_pos or 0, token.end_pos or 0)
        return mistakes.unexpected_token(span, token, wanted, self._bracket_around(), token in RESERVED)

    def _at_end(self) -> None:
        end = len(self._text.rstrip())
        unclosed = self._unclosed(len(self._text))
        if unclosed is not None:
            self._tell_bracket(unclosed, self._span(end, end))
        else:
            self._tell(end, mistakes.unexpected_end(self._span(end, end), self._expected()))
        self._finish()

    def _value_missing(self, name: Span) -> Diagnostic | None:
        """`a =` without a value takes the next line's name for it, and fails at that line's `=`."""
        before = self._text[: name.start].rstrip()
        if "\n" not in self._text[len(before) : name.start]:
            return None
        for sign in ("<-", "="):
            if before.endswith(sign):
                gap = self._span(len(before) - len(sign), len(before))
                return mistakes.value_missing(gap, sign, name)
        return None

    def _expected(self) -> Expected:
        return expected(self._accepted(), spellings())

    def _accepted(self) -> set[str]:
        found: set[str] = self._run.accepts()  # type: ignore[no-untyped-call]  # lark has no annotation there
        return found

    def _last(self) -> object:
        """What was read last and is not part of anything yet."""
        values: Sequence[object] = self._run.parser_state.value_stack
        return values[-1] if values else None

    def _name_before(self) -> Span | None:
        last = self._last()
        if isinstance(last, Node):
            return last.span if _WORD.fullmatch(last.span.text) else None
        return self._place(last) if _type(last) == "NAME" else None

    def _reserved(self, token: Token) -> Span | None:
        """A word of the language that something is bound to: this one, or the one before a binding sign."""
        last = self._last()
        if token in RESERVED and _BINDER.match(self._text, token.end_pos or 0):
            return self._place(token)
        is_keyword = isinstance(last, str) and last in RESERVED
        return self._place(last) if is_keyword and token in _BINDERS else None

    def _place(self, token: Any) -> Span:  # Any: a token of lark, which is not imported before it is needed
        return self._span(token.start_pos, token.end_pos)

    def _bracket_around(self) -> str:
        values: Sequence[object] = self._run.parser_state.value_stack
        return next((value for value in reversed(values) if isinstance(value, str) and value in ("(", "[", "{")), "")

    # Brackets

    def _shape(self) -> Outline:
        if self._outline is None:
            self._outline = Outline.of(self._text)
        return self._outline

    def _unmatched(self, closer: int) -> Unmatched | None:
        for problem in self._shape().problems:
            if isinstance(problem, Unmatched) and problem.closer == closer:
                return problem
        return None

    def _unclosed(self, place: int) -> Unclosed | None:
        """The bracket whose missing partner explains that something at this place was not expected."""
        for problem in self._shape().problems:
            if isinstance(problem, Unclosed) and problem not in self._told:
                begin = problem.noticed if self._text[problem.opener] == "{" else problem.opener + 1
                if begin <= place and (place <= problem.noticed or self._same_line(problem.noticed, place)):
                    return problem
        return None

    def _same_line(self, first: int, second: int) -> bool:
        return self._source.position(first)[0] == self._source.position(second)[0]

    def _tell_bracket(self, problem: Unclosed | Unmatched, noticed: Span | None = None) -> None:
        self._told.add(problem)
        if isinstance(problem, Unclosed):
            opener = self._span(problem.opener, problem.opener + 1)
            if noticed is None:
                end = min(problem.noticed, len(self._text.rstrip()))
                noticed = self._span(end, min(end + 1, len(self._text)))
            self._tell(problem.opener, mistakes.unclosed_bracket(opener, noticed))
        else:
            waiting = None if problem.opener is None else self._span(problem.opener, problem.opener + 1)
            closer = self._span(problem.closer, problem.closer + 1)
            self._tell(problem.closer, mistakes.unmatched_closer(closer, waiting))

    # Going on

    def _tell(self, place: int, mistake: Diagnostic) -> None:
        if place not in self.places:
            self.places.append(place)
            self.mistakes.append(mistake)

    def _go_on(self, place: int) -> None:
        state = self._run.lexer_thread.state
        assert state is not None, "the lexer has a text"
        state.line_ctr.char_pos = place

    def _resume(self, place: int) -> None:
        """Takes reading up at the next statement or item."""
        for point in self._shape().points_after(max(place, self._resumed + 1)):
            if self._stand_in(point.brace):
                self._resumed = point.start
                self._go_on(point.start)
                return
        self._finish()

    def _finish(self) -> None:
        """Takes reading up at the end, with the items that are complete."""
        self._cut(0)
        self._go_on(len(self._text))

    def _stand_in(self, brace: int | None) -> bool:
        """Brings the parser to where a statement of this brace may begin; with words of its own, if the header was
        not understood."""
        from lark import Token, UnexpectedToken

        if brace is None:
            self._cut(0)
            return True
        values = self._run.parser_state.value_stack
        for index in range(len(values) - 1, -1, -1):
            if _type(values[index]) == "LBRACE" and values[index].start_pos == brace:
                self._cut(index + 1)
                return True
        shape = self._shape()
        outer = shape.around[brace]
        if outer in shape.recipes or not self._stand_in(outer):
            return False
        header = _STATEMENT if outer is not None else _header(shape, brace)
        try:
            for terminal, text in (*header, ("LBRACE", "{")):
                self._run.parser_state.feed_token(Token(terminal, text, start_pos=brace, end_pos=brace + 1))
        except UnexpectedToken:
            return False
        return True

    def _cut(self, size: int) -> None:
        """Forgets all but the first values on the parser's stack, and the complete statements or items after them."""
        from lark import Tree

        state = self._run.parser_state
        if size < len(state.value_stack) and isinstance(state.value_stack[size], Tree):
            size += 1
        del state.value_stack[size:]
        del state.state_stack[size + 1 :]

    def _span(self, start: int, end: int) -> Span:
        return Span(self._source, start, end)


def _type(value: object) -> str | None:
    """The terminal of a token; None for anything else."""
    return getattr(value, "type", None) if isinstance(value, str) else None


def _header(shape: Outline, brace: int) -> tuple[tuple[str, str], ...]:
    """What stands in for the first line of an item."""
    if brace in shape.tables:
        return _TABLE
    return _RECIPE if brace in shape.recipes else _BLOCK
