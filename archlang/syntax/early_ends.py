"""Lines that end too early, so that the parser fails in the next one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.names import did_you_mean
from archlang.source import Span
from archlang.syntax import mistakes
from archlang.syntax.builders import NextLineTaken
from archlang.syntax.builders.parts import start_of
from archlang.syntax.expected import Expected
from archlang.syntax.half_headers import HalfHeader, is_in_header
from archlang.syntax.outline import CHOICE_WORDS, CONTINUING_WORDS, STATEMENT_WORDS, taken_clause
from archlang.syntax.parser_stack import terminal
from archlang.syntax.progress import LONGEST_COMMENT, Progress

if TYPE_CHECKING:
    from lark import Token

BINDERS = ("=", "<-")
_WORD = re.compile(r"\w+")
_READ = re.compile(r"\breads[ \t]+\w+\Z")
_LAST_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\Z")


class EarlyEnds:
    """Finds the line before an unexpected token that ends too early, if there is one."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def at_taken_line(self, taken: NextLineTaken) -> Diagnostic:
        """Returns the diagnostic of a line whose end a rule has taken from the next line."""
        following = taken.span
        last = taken.word or self._progress.last_piece(following.start)
        if last is None or (taken.word is None and self._progress.unfinished_sign(following.start) is not None):
            return self._value_missing_before(following)
        missing = "a name" if last.text in ("on", "records") else "a value"
        if _READ.search(self._progress.text, max(0, last.end - LONGEST_COMMENT), last.end):
            missing = "what is read of it (such as `causal`)"
        return mistakes.line_incomplete(last, Expected(taken.missing or (missing,)), following)

    def value_missing(self, token: Token) -> Diagnostic | None:
        """Returns a diagnostic for a line such as `a =` or `a = h +`, after which a statement, a line of a recipe or a
        `}` begins the next line: the parser fails there, or takes the first word for the value and fails after it."""
        start, end = token.start_pos or 0, token.end_pos or 0
        if token not in (*STATEMENT_WORDS, "}"):
            name = _LAST_NAME.search(
                self._progress.text, self._progress.line_start(start), len(self._progress.text[:start].rstrip())
            )
            if token not in BINDERS and (name is None or not self._progress.begins_part(name[0], name.start())):
                return None
            start, end = name.span() if name else (start, end)
        if not self._progress.outline.is_first(start) or self._progress.unfinished_sign(start) is None:
            return None
        return self._value_missing_before(self._progress.span(start, end))

    def _value_missing_before(self, following: Span) -> Diagnostic:
        last = self._progress.end_of_code(following.start)
        sign = self._progress.unfinished_sign(following.start) or self._progress.span(last - 1, last)
        return mistakes.value_missing(sign, following)

    def incomplete_line(self, token: Token, name: Span | None) -> Diagnostic | None:
        """Returns a diagnostic for a line such as `row "Prior"` or `repeat 3` that ends too early: the parser fails at
        the word that begins the next line, or takes the word for a name and fails after it."""
        from lark import Tree

        start = self._first_of_next_line(token, name)
        while self._begins_taken_part(before := self._progress.stack.last_before(start)):
            start = start_of(before)
        following = _WORD.match(self._progress.text, start)
        outline = self._progress.outline
        is_taken = token.start_pos != start
        if not (outline.begins_line(start) or self._breaks_off(start, is_taken) or self._lacks_binder(start)):
            return None
        if token.start_pos == start and self._progress.in_recipe_line(token) is not None:
            return None
        last = self._progress.last_piece(start)
        if last is not None and self._progress.stack.lacks_statics(self._progress.text, start):
            return mistakes.statics_without_bracket(
                last, self._progress.span(start, following.end() if following else start + 1)
            )
        before = self._progress.stack.last_before(start)
        is_complete = before is None or terminal(before) in ("LBRACE", "RBRACE") or isinstance(before, Tree)
        if last is None or is_complete or self._progress.same_line(last.start, start):
            return None
        missing = self._progress.expected(start)
        is_binder_missing = set(missing.phrases) <= {"`=`", "`<-`"}
        is_keyword = name is not None and name.start != start and self._progress.begins_statement(name)
        if name is not None and is_keyword and is_binder_missing and did_you_mean(name.text, STATEMENT_WORDS):
            return None
        end = following.end() if following else token.end_pos or start + 1
        return mistakes.line_incomplete(last, missing, self._progress.span(start, end))

    def _first_of_next_line(self, token: Token, name: Span | None) -> int:
        """Returns the place of an unexpected token, or of a word at the beginning of its line that the parser has taken
        for a name."""
        place = token.start_pos or 0
        outline = self._progress.outline
        if name is not None and name.end <= place and outline.begins_line(name.start):
            return name.start
        first = next(outline.lines_between(self._progress.line_start(place), place + 1), place)
        word = _WORD.match(self._progress.text, first)
        is_keyword = self._progress.stack.begins_with_keyword(first)
        if word is not None and not is_keyword and self._progress.begins_part(word[0], first):
            return first
        if word is not None and not is_keyword and self._continues_part(word[0], first):
            return first
        if (value := self._progress.stack.value_of_choice()) is not None and outline.is_first(value):
            return value
        return first if name is not None and name.start == first and name.end <= place else place

    def _continues_part(self, word: str, place: int) -> bool:
        """Returns whether a word at a place continues a part of a recipe or a table, or a header, in a line of its
        own."""
        brace = self._progress.stack.brace_around()
        continues = word == "where" if brace is None else brace in self._progress.outline.recipes
        return word in CONTINUING_WORDS and continues and self._progress.outline.is_first(place)

    def _begins_taken_part(self, value: object) -> bool:
        """Returns whether a value is the word of a line that the parser has taken for a name."""
        return terminal(value) == "NAME" and self._progress.begins_part(str(value), start_of(value))

    def _breaks_off(self, place: int, is_taken: bool) -> bool:
        """Returns whether a line within a header or brackets ends too early before a place: if it ends with a comma or
        an opening bracket, or if the first word of the next line (`is_taken`) can follow it, the next line has the
        mistake."""
        last, outline = self._progress.last_piece(place), self._progress.outline
        if last is None or not outline.is_first(place):
            return False
        if last.text in (",", "(", "[", "{"):
            return last.text == "," and self._progress.text[place] in "{}"
        if self._progress.stack.lacks_statics(self._progress.text, place):
            return True
        if is_taken and last.text != ":" and self._progress.unfinished_sign(place) is None:
            is_choice = last.text in CHOICE_WORDS and self._progress.stack.value_of_choice() == place
            following = _WORD.match(self._progress.text, place)
            return is_choice or (following is not None and self._continues_part(following[0], place))
        part = outline.continued_part(place)
        if not is_taken and "MISSING_LINE" in self._progress.stack.accepted() and (part is None or not part.is_clause):
            return False
        is_in_part = part is not None and not part.is_clause
        return self._progress.stack.bracket_around() in ("(", "[") or is_in_header(self._progress.stack) or is_in_part

    def _lacks_binder(self, place: int) -> bool:
        """Returns whether a line of one name ends before a place, at which a line begins that is none either."""
        point = next(self._progress.outline.points_after(place), None)
        is_line = point is not None and point.start == place and point.is_unknown
        return is_line and set(self._progress.expected(place).phrases) <= {"`=`", "`<-`"}

    def let_without_name(self, place: int) -> Diagnostic | None:
        """Returns a diagnostic for a `let` before a place that has taken its name from the next line, whose value goes
        on there."""
        name = self._progress.let()
        if (
            name is None
            or not self._progress.outline.begins_line(name.start)
            or not self._progress.same_line(name.start, place)
        ):
            return None
        word = self._progress.span(
            self._progress.end_of_code(name.start) - len("let"), self._progress.end_of_code(name.start)
        )
        return mistakes.line_incomplete(word, Expected(("a name",)), name) if word.text == "let" else None

    def taken_clause(self, place: int) -> Span | None:
        """Returns the clause of an extern before a place that was read as a value of the clause before it."""
        header = HalfHeader.of(self._progress.stack, self._progress.text)
        start = header.last_clause() if header is not None and header.is_extern else None
        clause = None if start is None else taken_clause(self._progress.text, start, place)
        return None if clause is None else self._progress.span(*clause)
