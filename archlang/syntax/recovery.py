"""Parses with error recovery: after a mistake, parsing resumes at the next statement or item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import MOST_ERRORS
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.bracket_mistakes import BracketMistakes
from archlang.syntax.builders import DEEPEST, NextLineTaken, TooDeep, TreeBuilder
from archlang.syntax.character_mistakes import unknown_character
from archlang.syntax.early_ends import EarlyEnds
from archlang.syntax.grammar import Callbacks, grammar, spellings
from archlang.syntax.misplaced_lines import without_header
from archlang.syntax.outline import CLOSERS, RESERVED, Unclosed, Unmatched
from archlang.syntax.parser_stack import ParserStack
from archlang.syntax.progress import Progress
from archlang.syntax.resumption import Resumption
from archlang.syntax.unexpected import Unexpected

if TYPE_CHECKING:
    from lark import Token
    from lark.parsers.lalr_interactive_parser import InteractiveParser

# One more than is shown, so that the log can report the excess.
MOST_READ = MOST_ERRORS + 1
_DEVIATION = "DEVIATION"
_MALFORMED_NUMBER = re.compile(r"[0-9][\w.]*")
_WORD = re.compile(r"\w+")
_LAST_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\Z")
# What follows an extra closing bracket, unless a value goes on there.
_NO_VALUE = re.compile(r"[ \t]*(?:[{}#\r\n]|\Z)")
_LINE_END = re.compile(r"[\r\n]|\Z")


class Reader:
    """Parses one text: `text` is the text of the source, with spaces in place of the parts to skip."""

    def __init__(self, source: Source, text: str, builder: TreeBuilder, start: str, limit: int = MOST_READ) -> None:
        self.mistakes: list[Diagnostic] = []
        # The offsets of the mistakes, where the tree is incorrect.
        self.offsets: list[int] = []
        self._limit = limit
        self._run: InteractiveParser = grammar().parse_interactive(text, start=start)
        # All texts share one parser; each text has its own builder.
        self._run.parser_state.parse_conf.callbacks = Callbacks(builder.rules)  # type: ignore[assignment]  # is not iterated
        self._progress = Progress(source, text, ParserStack(self._run))
        self._resumption = Resumption(self._run, self._progress.stack, text)
        self._brackets = BracketMistakes(self._progress)
        self._early = EarlyEnds(self._progress)
        self._unexpected = Unexpected(self._progress)

    def read(self) -> Any:  # Any: the node of the start rule
        """Returns the node of the start rule, or None if the text cannot be parsed."""
        from lark import UnexpectedCharacters, UnexpectedToken

        while len(self.mistakes) < self._limit:
            try:
                return self._parse()
            except UnexpectedCharacters as error:
                self._at_character(error.pos_in_stream or 0)
            except UnexpectedToken as error:
                if error.token.type == "$END":
                    self._at_end()
                elif not self._read_as_name_or_sign(error.token):
                    self._at_token(error.token)
            except TooDeep as error:
                self._report(error.span.start, mistakes.nested_too_deep(error.span, DEEPEST))
                self._resume(error.span.end)
            except NextLineTaken as error:
                self._at_taken_line(error)
        self._resumption.finish()
        try:
            return self._parse()
        except UnexpectedToken:
            return None

    def _parse(self) -> Any:  # Any: the node of the start rule
        return self._run.resume_parse()  # type: ignore[no-untyped-call]  # lark has no annotation there

    def report_brackets(self) -> None:
        """Adds the unmatched brackets that parsing did not reach, if the text has mistakes."""
        for problem in self._brackets.unreported(self.offsets) if self.mistakes else ():
            if len(self.mistakes) < self._limit:
                self._report_bracket(problem)

    def _read_as_name_or_sign(self, token: Token) -> bool:
        """Feeds a keyword as a name, or `+-` as `+`, where the grammar accepts that; returns whether it did.

        A state of the LALR(1) tables can accept a keyword that is possible elsewhere only, so the contextual lexer may
        take a variable called `reads` for the keyword."""
        from lark import Token

        end = token.end_pos or 0
        if token.type == _DEVIATION:
            token, end = Token("PLUS", "+", start_pos=token.start_pos, end_pos=end - 1), end - 1
        elif token.type in spellings() and token.isalpha() and token not in RESERVED:
            token = Token("NAME", str(token), start_pos=token.start_pos, end_pos=end)
        else:
            return False
        if token.type not in self._progress.stack.accepted():
            return False
        self._run.parser_state.feed_token(token)
        self._move_to(end)
        return True

    # What went wrong

    def _at_character(self, place: int) -> None:
        character = self._progress.text[place]
        if character == '"':
            line_end = _LINE_END.search(self._progress.text, place)
            end = line_end.start() if line_end else place + 1
            self._report(place, mistakes.unterminated_string(self._progress.span(place, end)))
            self._resume(end)
        elif number := _MALFORMED_NUMBER.match(self._progress.text, place):
            self._report(place, mistakes.malformed_number(self._progress.span(*number.span())))
            self._resume(number.end())
        elif character == "." and (
            name := _LAST_NAME.search(self._progress.text, self._progress.line_start(place), place)
        ):
            self._report(place, mistakes.name_missing(self._progress.span(name.start(), place + 1)))
            self._resume(place + 1)
        else:
            word = _WORD.match(self._progress.text, place)
            end = word.end() if word else place + 1
            self._report(place, unknown_character(self._progress.span(place, end)))
            if character == ";":
                # Skipping the character is enough.
                self._move_to(end)
            else:
                self._resume(end)

    def _at_taken_line(self, taken: NextLineTaken) -> None:
        mistake = self._early.at_taken_line(taken)
        self._report(mistake.span.start, mistake)
        self._resume(taken.span.start, None if taken.word is None else taken.word.start)

    def _at_token(self, token: Token) -> None:
        place, end = token.start_pos or 0, token.end_pos or 0
        if (taken := self._early.taken_clause(place)) is not None:
            self._at_taken_line(NextLineTaken(taken))
            return
        name = self._progress.name_before()
        missing = self._early.let_without_name(place) or self._early.value_missing(token)
        reserved = self._unexpected.reserved(token)
        # In parentheses, the argument is the token itself.
        is_argument = token.type == "NAME" and self._progress.stack.bracket_around() == "("
        argument = self._progress.span(place, end) if is_argument else name
        unapplied = None if argument is None else self._unexpected.unapplied(argument)
        if argument is not None and unapplied is not None:
            bracket = self._brackets.closer_on_line(argument.start)
            self._report(argument.start, mistakes.application_without_brackets(unapplied, argument, bracket))
            self._resume(end if is_argument else place)
        elif token in CLOSERS and (unmatched := self._brackets.unmatched(place)) is not None:
            # If a value is missing too, parsing cannot continue after the bracket.
            is_extra = unmatched.opener is None and "NUMBER" not in self._progress.stack.accepted()
            is_extra &= _NO_VALUE.match(self._progress.text, end) is not None  # else its opener may be missing
            if not self._brackets.is_reported(unmatched):
                self._report_bracket(unmatched)
            if is_extra:
                self._move_to(end)
            else:
                self._resume(end)
        elif (unclosed := self._brackets.unclosed(place)) is not None:
            # An item inside an open body is parsed as a statement, and fails at its second word.
            place = min(place, unclosed.noticed)
            self._report_bracket(unclosed, self._progress.span(place, end))
            self._resume(place)
        elif missing is not None:
            self._report(missing.span.start, missing)
            self._resume(missing.labels[0].span.start)
        elif (misplaced := self._unexpected.misplaced(place, name)) is not None:
            is_outside = not self._progress.item_around()
            if is_outside:
                self._progress.stack.drop_from(misplaced.span.start)  # else a line `model` would be a model
            closer = self._brackets.closer_after(place) if is_outside else None
            if not (is_outside and self._is_below_mistake(misplaced.span.start)):
                self._report(misplaced.span.start, misplaced if closer is None else without_header(misplaced))
            self._resume(end if closer is None else closer)
        elif (incomplete := self._early.incomplete_line(token, name)) is not None:
            self._report(incomplete.span.start, incomplete)
            self._resume(incomplete.labels[0].span.start)
        elif (sign := self._unexpected.foreign_sign(place)) is not None:
            self._report(sign.span.start, sign)
            line_end = _LINE_END.search(self._progress.text, place)
            self._resume(line_end.start() if line_end else end)
        elif reserved is not None:
            self._report(reserved.start, mistakes.reserved_word(reserved))
            self._resume(end)
        elif (end_of_body := self._brackets.end_of_body(place)) is not None:
            self._report(place, self._unexpected.explain(token, name))
            self._resume(end_of_body)
        elif (end_of_lines := self._end_without_header(place)) is not None:
            self._report(place, self._unexpected.explain(token, name))
            self._resume(end_of_lines)
        else:
            mistake = self._unexpected.explain(token, name)
            self._report(place, mistake)
            self._brackets.skip_on_line(place)
            # A keyword in the middle of a line does not begin a statement.
            self._resume(place if self._progress.outline.is_first(place) else self._end_of(mistake, end))

    def _is_below_mistake(self, place: int) -> bool:
        """Returns whether a line is in the body of a header with a mistake, such as `recipe r:`."""
        indent = place - self._progress.line_start(place)
        start = place - indent
        while start > 0:
            end, start = start, self._progress.line_start(start - 1)
            line = self._progress.text[start:end]
            if line.strip() and len(line) - len(line.lstrip()) < indent:
                return any(start <= offset < end for offset in self.offsets)
        return False

    def _end_of(self, mistake: Diagnostic, end: int) -> int:
        """Returns where parsing can resume after a mistake in a line, whose unexpected token ends at `end`."""
        if mistake.span.end > end and mistake.span.text[0] == "{":  # no body begins there
            line_end = _LINE_END.search(self._progress.text, mistake.span.end)
            return line_end.start() if line_end else mistake.span.end
        return max(end, mistake.span.end)

    def _end_without_header(self, place: int) -> int | None:
        """Returns the end of the lines of a block whose header is gone, if they begin at a place."""
        is_outside = self._progress.outline.is_first(place) and "EXTERN" in self._progress.stack.accepted()
        return self._brackets.closer_after(place) if is_outside else None

    def _at_end(self) -> None:
        end = len(self._progress.text.rstrip())
        unclosed = self._brackets.unclosed(len(self._progress.text))
        misplaced = self._unexpected.misplaced(len(self._progress.text), None)
        if unclosed is not None:
            self._report_bracket(unclosed, self._progress.span(end, end) if unclosed.noticed >= end else None)
        elif misplaced is not None:
            self._report(misplaced.span.start, misplaced)
        else:
            self._report(end, mistakes.unexpected_end(self._progress.span(end, end), self._progress.expected()))
        self._resumption.finish()

    # Recovery

    def _report(self, place: int, mistake: Diagnostic) -> None:
        if place not in self.offsets:
            self.offsets.append(place)
            self.mistakes.append(mistake)

    def _move_to(self, place: int) -> None:
        self._resumption.move_to(place)

    def _resume(self, place: int, start: int | None = None) -> None:
        self._resumption.resume(place, self._progress.outline, start)
        self._brackets.skip_between(place, self._resumption.place)

    def _report_bracket(self, problem: Unclosed | Unmatched, noticed: Span | None = None) -> None:
        mistake = self._brackets.mistake_of(problem, noticed)
        self._report(mistake.span.start, mistake)
