"""Parses with error recovery: after a mistake, parsing resumes at the next statement or item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import MOST_ERRORS
from archlang.diagnostics.names import did_you_mean, is_typing_error
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.builders import DEEPEST, NextLineTaken, TooDeep, TreeBuilder
from archlang.syntax.builders.parts import start_of
from archlang.syntax.expected import Expected, expected, named_after
from archlang.syntax.grammar import Callbacks, grammar, spellings
from archlang.syntax.half_headers import HalfHeader, is_in_header
from archlang.syntax.line_mistakes import in_line
from archlang.syntax.misplaced_lines import misplaced_line, without_header
from archlang.syntax.outline import (
    CHOICE_WORDS,
    CLAUSE_WORDS,
    CLOSERS,
    ITEM_WORDS,
    PART_WORDS,
    RECIPE_WORDS,
    RESERVED,
    STATEMENT_WORDS,
    Outline,
    Point,
    Unclosed,
    Unmatched,
    taken_clause,
)
from archlang.syntax.parser_stack import ParserStack, terminal
from archlang.syntax.resumption import Resumption
from archlang.syntax.tree import Node

if TYPE_CHECKING:
    from lark import Token
    from lark.parsers.lalr_interactive_parser import InteractiveParser

# One more than is shown, so that the log can report the excess.
MOST_READ = MOST_ERRORS + 1
_DEVIATION = "DEVIATION"
_MALFORMED_NUMBER = re.compile(r"[0-9][\w.]*")
_BINDERS = ("=", "<-")
_BINDER = re.compile(r"\s*(?:=(?!=)|<-)")
_WORD = re.compile(r"\w+")
_WORD_OF_LINE = re.compile(r"\w++(?!\s*:)")  # `:` follows a parameter
_LAST_NAME = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*\Z")
# A sign or a word that a value follows, at the end of a text.
_UNFINISHED = re.compile(
    r"(?:\|>|<-|[=!<>]=|\.\.|[-+*/%=<]|(?<!-)>|(?<![\w.])(?:in|and|or|not|when|return|emit|if|repeat|stack))\Z"
)
_LAST_PIECE = re.compile(r'(?:[\w.]+|"[^"\r\n]*"|->|<-|\|>|[=!<>]=|\S)\Z')
_LONGEST_SIGN = 8
_LONGEST_COMMENT = 1_000
_MODEL_LINE = re.compile(r"model[ \t]+[A-Za-z_][\w.]*[ \t]*(?:\[[^\[\]]*\])?(?:\s|#[^\r\n]*)*+")
_LINE_END = re.compile(r"[\r\n]|\Z")
_OPENERS = ("LPAR", "LSQB", "LBRACE")
_ITEMS_WITH_BODIES = ("BLOCK", "MODEL", "RECIPE", "TABLE")


_FOREIGN_SIGNS = {"//": mistakes.foreign_comment, "**": mistakes.power_operator, "->": mistakes.arrow_in_expression}
_WORDS_OF_LOOPS = ("scan", "experts", "after", "carry", "growing", "halting", "as", "by", "drawn", "truncated")
# A block, with or without statics, before what may be its argument.
_BLOCK = re.compile(r"(?<=[\s(\[=,])([A-Za-z_][\w.]*(?:\[[^\[\]\r\n]*\])?)[ \t]+\Z")


class Reader:
    """Parses one text: `text` is the text of the source, with spaces in place of the parts to skip."""

    def __init__(self, source: Source, text: str, builder: TreeBuilder, start: str, limit: int = MOST_READ) -> None:
        self.mistakes: list[Diagnostic] = []
        # The offsets of the mistakes, where the tree is incorrect.
        self.offsets: list[int] = []
        self._source = source
        self._text = text
        self._limit = limit
        self._run: InteractiveParser = grammar().parse_interactive(text, start=start)
        # All texts share one parser; each text has its own builder.
        self._run.parser_state.parse_conf.callbacks = Callbacks(builder.rules)  # type: ignore[assignment]  # is not iterated
        self._outline: Outline | None = None
        self._stack = ParserStack(self._run)
        self._resumption = Resumption(self._run, self._stack, text)
        self._reported: set[Unclosed | Unmatched] = set()

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
        if self._outline is not None:
            for problem in self._outline.problems:
                is_new = problem not in self._reported and not self._ends_half_header(problem)
                if is_new and len(self.mistakes) < self._limit:
                    self._report_bracket(problem)

    def _ends_half_header(self, problem: Unclosed | Unmatched) -> bool:
        """Returns whether a problem is the closing bracket of a header that breaks off before its opening bracket."""
        if not isinstance(problem, Unmatched) or problem.opener is not None or self._text[problem.closer] == "}":
            return False
        outline = self._get_outline()
        items = [point.start for point in outline.points if point.is_item and point.start < problem.closer]
        start = items[-1] if items else 0
        braces = any(start < brace < problem.closer for brace in outline.around)
        return not braces and any(start <= place < problem.closer for place in self.offsets)

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
        if token.type not in self._stack.accepted():
            return False
        self._run.parser_state.feed_token(token)
        self._move_to(end)
        return True

    # What went wrong

    def _at_character(self, place: int) -> None:
        character = self._text[place]
        if character == '"':
            line_end = _LINE_END.search(self._text, place)
            end = line_end.start() if line_end else place + 1
            self._report(place, mistakes.unterminated_string(self._span(place, end)))
            self._resume(end)
        elif number := _MALFORMED_NUMBER.match(self._text, place):
            self._report(place, mistakes.malformed_number(self._span(*number.span())))
            self._resume(number.end())
        elif character == "." and (name := _LAST_NAME.search(self._text, self._line_start(place), place)):
            self._report(place, mistakes.name_missing(self._span(name.start(), place + 1)))
            self._resume(place + 1)
        else:
            word = _WORD.match(self._text, place)
            end = word.end() if word else place + 1
            self._report(place, mistakes.unknown_character(self._span(place, end)))
            if character == ";":
                # Skipping the character is enough.
                self._move_to(end)
            else:
                self._resume(end)

    def _at_taken_line(self, taken: NextLineTaken) -> None:
        following = taken.span
        last = taken.word or self._last_piece(following.start)
        if taken.word is None and (last is None or self._unfinished_sign(following.start) is not None):
            mistake = self._value_missing_before(following)
        else:
            missing = "a name" if last.text in ("on", "records") else "a value"
            mistake = mistakes.line_incomplete(last, Expected(taken.missing or (missing,)), following)
        self._report(mistake.span.start, mistake)
        self._resume(following.start)

    def _at_token(self, token: Token) -> None:
        place, end = token.start_pos or 0, token.end_pos or 0
        if (taken := self._taken_clause(place)) is not None:
            self._at_taken_line(NextLineTaken(taken))
            return
        name = self._name_before()
        missing = self._let_without_name(place) or self._value_missing(token)
        reserved = self._reserved(token)
        unapplied = None if name is None else self._unapplied(name)
        if token in CLOSERS and (unmatched := self._unmatched(place)) is not None:
            # If a value is missing too, parsing cannot continue after the bracket.
            is_extra = unmatched.opener is None and "NUMBER" not in self._stack.accepted()
            self._report_bracket(unmatched)
            if is_extra:
                self._move_to(end)
            else:
                self._resume(end)
        elif (unclosed := self._unclosed(place)) is not None:
            # An item inside an open body is parsed as a statement, and fails at its second word.
            place = min(place, unclosed.noticed)
            self._report_bracket(unclosed, self._span(place, end))
            self._resume(place)
        elif name is not None and unapplied is not None:
            self._report(name.start, mistakes.application_without_parentheses(unapplied, name))
            self._resume(place)
        elif missing is not None:
            self._report(missing.span.start, missing)
            self._resume(missing.labels[0].span.start)
        elif (misplaced := self._misplaced(place, name)) is not None:
            is_outside = not self._item_around()
            if is_outside:
                self._stack.drop_from(misplaced.span.start)  # else a line `model` would be a model
            closer = self._closer_after(place) if is_outside else None
            self._report(misplaced.span.start, misplaced if closer is None else without_header(misplaced))
            self._resume(end if closer is None else closer)
        elif (incomplete := self._incomplete_line(token, name)) is not None:
            self._report(incomplete.span.start, incomplete)
            self._resume(incomplete.labels[0].span.start)
        elif (sign := self._foreign_sign(place)) is not None:
            self._report(sign.start, _FOREIGN_SIGNS[sign.text](sign))
            line_end = _LINE_END.search(self._text, place)
            self._resume(line_end.start() if line_end else end)
        elif reserved is not None:
            self._report(reserved.start, mistakes.reserved_word(reserved))
            self._resume(end)
        elif (end_of_body := self._end_of_body(place)) is not None:
            self._report(place, self._unexpected(token, name))
            self._resume(end_of_body)
        else:
            self._report(place, self._unexpected(token, name))
            self._reported |= self._brackets_on_line(place)
            # A keyword in the middle of a line does not begin a statement.
            self._resume(place if self._get_outline().is_first(place) else end)

    def _unexpected(self, token: Token, name: Span | None) -> Diagnostic:
        accepted = self._expected()
        if name is not None and set(accepted.phrases) <= {"`=`", "`<-`"}:
            words = (*STATEMENT_WORDS, "else")
            near, keyword = did_you_mean(name.text, words), mistakes.keyword_without_space(name, words)
            if keyword is not None and (near is None or not is_typing_error(name.text, near, words)):
                return mistakes.keywords_without_space(name, keyword)
            if near is not None:
                return mistakes.misspelt_keyword(name, name.text, words)
        span = self._span(token.start_pos or 0, token.end_pos or 0)
        if token in ("(", "|>") or accepted.phrases == ("a name",):
            let = self._let()
            if let is not None and self._same_line(let.start, span.start):
                return mistakes.let_of_other(let, span)
        if token in mistakes.OPERATORS_AFTER_PIPE and (pipe := self._pipe_before(span.start)) is not None:
            return mistakes.operator_after_pipe(span, pipe)
        return self._in_recipe_line(token) or mistakes.unexpected_token(
            span, token, accepted, self._stack.bracket_around(), token in RESERVED
        )

    def _pipe_before(self, place: int) -> Span | None:
        """Returns the place of the pipe that ends before an operator, if there is one."""
        values = self._stack.values
        for index in range(len(values) - 1, 0, -1):
            kind = terminal(values[index])
            if kind == "PIPE":
                return self._span(start_of(values[index - 1]), self._end_of_code(place))
            if kind in _OPENERS or kind in ("EQUAL", "UPDATE"):
                return None
        return None

    def _in_recipe_line(self, token: Token) -> Diagnostic | None:
        """Returns a diagnostic for an unexpected token in a line of a recipe or a table, by what the line says."""
        if self._stack.brace_around() not in self._get_outline().recipes:
            return None
        span = self._span(token.start_pos or 0, token.end_pos or 0)
        return in_line(span, token, self._get_outline().is_first(span.start))

    def _at_end(self) -> None:
        end = len(self._text.rstrip())
        unclosed = self._unclosed(len(self._text))
        misplaced = self._misplaced(len(self._text), None)
        if unclosed is not None:
            self._report_bracket(unclosed, self._span(end, end) if unclosed.noticed >= end else None)
        elif misplaced is not None:
            self._report(misplaced.span.start, misplaced)
        else:
            self._report(end, mistakes.unexpected_end(self._span(end, end), self._expected()))
        self._resumption.finish()

    def _value_missing(self, token: Token) -> Diagnostic | None:
        """Returns a diagnostic for a line such as `a =` or `a = h +`, after which a statement, a line of a recipe or a
        `}` begins the next line: the parser fails there, or takes the first word for the value and fails after it."""
        start, end = token.start_pos or 0, token.end_pos or 0
        if token not in (*STATEMENT_WORDS, "}"):
            name = _LAST_NAME.search(self._text, self._line_start(start), len(self._text[:start].rstrip()))
            if token not in _BINDERS and (name is None or not self._begins_part(name[0], name.start())):
                return None
            start, end = name.span() if name else (start, end)
        if not self._get_outline().is_first(start) or self._unfinished_sign(start) is None:
            return None
        return self._value_missing_before(self._span(start, end))

    def _begins_part(self, word: str, place: int) -> bool:
        """Returns whether a word at a place begins a part of a recipe or a table, a clause of an extern or an item."""
        brace = self._stack.brace_around()
        if brace is None:
            return word in (*CLAUSE_WORDS, *ITEM_WORDS) and self._get_outline().begins_line(place)
        return word in PART_WORDS and brace in self._get_outline().recipes

    def _value_missing_before(self, following: Span) -> Diagnostic:
        last = self._end_of_code(following.start)
        sign = self._unfinished_sign(following.start) or self._span(last - 1, last)
        return mistakes.value_missing(sign, following)

    def _unfinished_sign(self, place: int) -> Span | None:
        """Returns the sign or word before a place that a value follows."""
        last = self._end_of_code(place)
        sign = _UNFINISHED.search(self._text, max(0, last - _LONGEST_SIGN), last)
        return None if sign is None else self._span(*sign.span())

    def _end_of_code(self, place: int) -> int:
        """Returns the end of the last word or sign before a place, without comments; comments may be long, so only the
        last characters are searched."""
        begin = max(0, place - _LONGEST_COMMENT)
        while True:
            code = self._text[begin:place].rstrip()
            comment = code.find("#", max(0, self._line_start(begin + len(code)) - begin))
            if comment < 0:
                return begin + len(code)
            place = begin + comment

    def _incomplete_line(self, token: Token, name: Span | None) -> Diagnostic | None:
        """Returns a diagnostic for a line such as `row "Prior"` or `repeat 3` that ends too early: the parser fails at
        the word that begins the next line, or takes the word for a name and fails after it."""
        from lark import Tree

        start = self._first_of_next_line(token, name)
        while self._begins_taken_part(before := self._stack.last_before(start)):
            start = start_of(before)
        following = _WORD.match(self._text, start)
        outline = self._get_outline()
        if not outline.begins_line(start) and not self._breaks_off(start, is_taken=token.start_pos != start):
            return None
        if token.start_pos == start and self._in_recipe_line(token) is not None:
            return None
        last = self._last_piece(start)
        if last is not None and self._stack.lacks_statics(self._text, start):
            return mistakes.statics_without_bracket(
                last, self._span(start, following.end() if following else start + 1)
            )
        before = self._stack.last_before(start)
        is_complete = before is None or terminal(before) in ("LBRACE", "RBRACE") or isinstance(before, Tree)
        if last is None or is_complete or self._same_line(last.start, start):
            return None
        missing = self._expected(start)
        is_binder_missing = set(missing.phrases) <= {"`=`", "`<-`"}
        if name is not None and name.start != start and is_binder_missing and did_you_mean(name.text, STATEMENT_WORDS):
            return None
        end = following.end() if following else token.end_pos or start + 1
        return mistakes.line_incomplete(last, missing, self._span(start, end))

    def _first_of_next_line(self, token: Token, name: Span | None) -> int:
        """Returns the place of an unexpected token, or of a word at the beginning of its line that the parser has taken
        for a name."""
        place = token.start_pos or 0
        outline = self._get_outline()
        if name is not None and name.end <= place and outline.begins_line(name.start):
            return name.start
        first = next(outline.lines_between(self._line_start(place), place + 1), place)
        word = _WORD.match(self._text, first)
        is_keyword = self._stack.begins_with_keyword(first)
        if word is not None and not is_keyword and self._begins_part(word[0], first):
            return first
        if (value := self._stack.value_of_choice()) is not None and outline.is_first(value):
            return value
        return first if name is not None and name.start == first and name.end <= place else place

    def _begins_taken_part(self, value: object) -> bool:
        """Returns whether a value is the word of a line that the parser has taken for a name."""
        return terminal(value) == "NAME" and self._begins_part(str(value), start_of(value))

    def _breaks_off(self, place: int, is_taken: bool) -> bool:
        """Returns whether a line within a header or brackets ends too early before a place: if it ends with a comma or
        an opening bracket, or if the first word of the next line (`is_taken`) can follow it, the next line has the
        mistake."""
        last, outline = self._last_piece(place), self._get_outline()
        if last is None or not outline.is_first(place) or last.text in (",", "(", "[", "{"):
            return False
        if self._stack.lacks_statics(self._text, place):
            return True
        if is_taken and last.text != ":" and self._unfinished_sign(place) is None:
            return last.text in CHOICE_WORDS and self._stack.value_of_choice() == place
        part = outline.continued_part(place)
        if not is_taken and "MISSING_LINE" in self._stack.accepted() and (part is None or not part.is_clause):
            return False
        is_in_part = part is not None and not part.is_clause
        return self._stack.bracket_around() in ("(", "[") or is_in_header(self._stack) or is_in_part

    def _last_piece(self, place: int) -> Span | None:
        """Returns the last word or sign before a place."""
        end = self._end_of_code(place)
        piece = _LAST_PIECE.search(self._text, max(0, end - _LONGEST_COMMENT), end)
        return None if piece is None else self._span(*piece.span())

    def _misplaced(self, place: int, name: Span | None) -> Diagnostic | None:
        """Returns a diagnostic for a line of a recipe or a table that stands elsewhere: the unexpected token at `place`
        begins it, or a name before that the parser takes for a value, or a `model` without inputs."""
        outline, around = self._get_outline(), self._item_around()
        if not around and "LBRACE" in self._stack.accepted():
            return None  # the `{` of an item is missing
        model = None if around else self._model_without_inputs(place)
        token = _WORD.match(self._text, place)
        words = [model, name, None if token is None else self._span(*token.span())]
        for word in words:
            if word is None or not outline.is_first(word.start) or not _WORD_OF_LINE.match(self._text, word.start):
                continue
            if around or word is model or word.text != "model":
                items = (point.start for point in reversed(outline.points) if _is_item_before(point, word.start))
                diagnostic = misplaced_line(word, around, next(items, None))
                if word is not model or diagnostic is None:
                    return diagnostic
                following = "" if token is None else self._text[token.start() : token.end()]
                is_line = following in RECIPE_WORDS or (diagnostic.edits and following in ("", *ITEM_WORDS))
                return diagnostic if is_line else None
        return None

    def _model_without_inputs(self, place: int) -> Span | None:
        """Returns the word of a line such as `model gut[d = 8]` before a place, which is no definition."""
        token = next((value for value in self._stack.values[::-1] if terminal(value) == "MODEL"), None)
        start = None if token is None else token.start_pos
        if start is None or not _MODEL_LINE.fullmatch(self._text, start, place):
            return None
        return self._token_span(token)

    def _item_around(self) -> str:
        """Returns the word of the item in whose body the parser is; empty outside of bodies."""
        if not self._stack.open_braces():
            return ""
        types = [terminal(value) for value in self._stack.values]
        return next((str(kind).lower() for kind in types if kind in _ITEMS_WITH_BODIES), "")

    def _unapplied(self, name: Span) -> Span | None:
        """Returns the block before a name with which no statement begins, as in `y = norm h`."""
        if self._get_outline().is_first(name.start) or self._stack.brace_around() in (
            None,
            *self._get_outline().recipes,
        ):
            return None
        start = self._line_start(name.start)
        block = _BLOCK.search(self._text, max(start, name.start - _LONGEST_COMMENT), name.start)
        is_block = block is not None and block[1] not in (*RESERVED, *_WORDS_OF_LOOPS)
        return self._span(*block.span(1)) if block is not None and is_block else None

    def _let(self) -> Span | None:
        """Returns the name that the parser has read after `let`, if it is in the statement."""
        values = self._stack.values
        for index in range(len(values) - 2, -1, -1):
            if terminal(values[index]) == "LET":
                return self._token_span(values[index + 1]) if terminal(values[index + 1]) == "NAME" else None
            if terminal(values[index]) == "LBRACE":
                return None
        return None

    def _let_without_name(self, place: int) -> Diagnostic | None:
        """Returns a diagnostic for a `let` before a place that has taken its name from the next line, whose value goes
        on there."""
        name = self._let()
        if name is None or not self._get_outline().begins_line(name.start) or not self._same_line(name.start, place):
            return None
        word = self._span(self._end_of_code(name.start) - len("let"), self._end_of_code(name.start))
        return mistakes.line_incomplete(word, Expected(("a name",)), name) if word.text == "let" else None

    def _foreign_sign(self, place: int) -> Span | None:
        """Returns the place of a sign that is no operator, one of whose characters is at `place`."""
        for start in (place - 1, place):
            if self._text[max(start, 0) : start + 2] in _FOREIGN_SIGNS:
                return self._span(start, start + 2)
        return None

    def _taken_clause(self, place: int) -> Span | None:
        """Returns the clause of an extern before a place that was read as a value of the clause before it."""
        header = HalfHeader.of(self._stack, self._text)
        start = header.last_clause() if header is not None and header.is_extern else None
        clause = None if start is None else taken_clause(self._text, start, place)
        return None if clause is None else self._span(*clause)

    def _expected(self, place: int | None = None) -> Expected:
        """Returns what the grammar accepts, after all that was read, or at a place instead of what was read since."""
        last = self._stack.last if place is None else self._stack.last_before(place)
        is_read = any(terminal(value) == "READS" for value in self._stack.values)
        kind = named_after(terminal(last), self._stack.bracket_around(), is_read)
        accepted = self._stack.accepted() if place is None else self._stack.accepted_at(place)
        return Expected((kind,)) if kind else expected(accepted, spellings())

    def _name_before(self) -> Span | None:
        last = self._stack.last
        if isinstance(last, Node):
            return last.span if _WORD.fullmatch(last.span.text) else None
        return self._token_span(last) if terminal(last) == "NAME" else None

    def _reserved(self, token: Token) -> Span | None:
        """Returns the span of a reserved word that the text uses as a name: this token, or the one before it."""
        last = self._stack.last
        if token in RESERVED and _BINDER.match(self._text, token.end_pos or 0):
            return self._token_span(token)
        is_keyword = isinstance(last, str) and last in RESERVED
        return self._token_span(last) if is_keyword and token in _BINDERS else None

    def _token_span(self, token: Any) -> Span:  # Any: a token of lark, which is imported late
        return self._span(token.start_pos, token.end_pos)

    # Brackets

    def _get_outline(self) -> Outline:
        if self._outline is None:
            self._outline = Outline.of(self._text)
        return self._outline

    def _unmatched(self, closer: int) -> Unmatched | None:
        for problem in self._get_outline().problems:
            if isinstance(problem, Unmatched) and problem.closer == closer:
                return problem
        return None

    def _unclosed(self, place: int) -> Unclosed | None:
        """Returns the unclosed bracket that explains an unexpected token at this place, if any."""
        for problem in self._get_outline().problems:
            if isinstance(problem, Unclosed) and problem not in self._reported:
                begin = problem.noticed if self._text[problem.opener] == "{" else problem.opener + 1
                is_near = place <= problem.noticed or self._same_line(problem.noticed, place)
                if begin <= place and (is_near or self._stack.is_open(problem.opener)):
                    return problem
        return None

    def _end_of_body(self, place: int) -> int | None:
        """Returns the end of the body whose `{` is missing at a place; None if no `}` ends it before the next item."""
        if self._stack.brace_around() is not None or "LBRACE" not in self._stack.accepted():
            return None
        return self._closer_after(place)

    def _closer_after(self, place: int) -> int | None:
        """Returns the end of a `}` without a `{` that ends the lines from a place on; None if there is none before the
        next item."""
        outline = self._get_outline()
        problem = next((problem for problem in outline.problems if _place(problem) >= place), None)
        if not isinstance(problem, Unmatched) or self._text[problem.closer] != "}":
            return None
        for point in outline.points_after(place):
            # An indented `model` can be a part of a recipe.
            if place < point.start < problem.closer and point.is_item and not self._begins_model(point.start):
                return None
        self._reported.add(problem)
        return problem.closer + 1

    def _begins_model(self, place: int) -> bool:
        return self._text.startswith("model", place) and not self._text.startswith(("\n", "\r"), place - 1)

    def _brackets_on_line(self, place: int) -> set[Unclosed | Unmatched]:
        """Returns the brackets on the line of an unexpected token that match no other because of it: brackets after it,
        and `{` if it is one."""
        is_brace = self._text[place] == "{"
        return {
            problem
            for problem in self._get_outline().problems
            if (
                problem.opener is None and problem.closer > place and self._same_line(place, problem.closer)
                if isinstance(problem, Unmatched)
                else self._same_line(problem.opener, place)
                and (is_brace if self._text[problem.opener] == "{" else problem.opener > place)
            )
        }

    def _closers_between(self, start: int, end: int) -> set[Unclosed | Unmatched]:
        """Returns the closing `)` and `]` in a skipped text whose opening brackets are missing."""
        return {
            problem
            for problem in self._get_outline().problems
            if isinstance(problem, Unmatched) and start < problem.closer < end and self._text[problem.closer] != "}"
        }

    def _line_start(self, place: int) -> int:
        return self._source.line_bounds(self._source.position(place)[0])[0]

    def _same_line(self, first: int, second: int) -> bool:
        return self._source.position(first)[0] == self._source.position(second)[0]

    def _report_bracket(self, problem: Unclosed | Unmatched, noticed: Span | None = None) -> None:
        self._reported.add(problem)
        if isinstance(problem, Unclosed):
            opener = self._span(problem.opener, problem.opener + 1)
            if noticed is None:
                end = min(problem.noticed, len(self._text.rstrip()))
                noticed = self._span(end, min(end + 1, len(self._text)))
            self._report(problem.opener, mistakes.unclosed_bracket(opener, noticed))
        else:
            opener_span = None if problem.opener is None else self._span(problem.opener, problem.opener + 1)
            closer = self._span(problem.closer, problem.closer + 1)
            self._report(problem.closer, mistakes.unmatched_closer(closer, opener_span))

    # Recovery

    def _report(self, place: int, mistake: Diagnostic) -> None:
        if place not in self.offsets:
            self.offsets.append(place)
            self.mistakes.append(mistake)

    def _move_to(self, place: int) -> None:
        self._resumption.move_to(place)

    def _resume(self, place: int) -> None:
        self._resumption.resume(place, self._get_outline())
        self._reported |= self._closers_between(place, self._resumption.place)

    def _span(self, start: int, end: int) -> Span:
        return Span(self._source, start, end)


def _is_item_before(point: Point, place: int) -> bool:
    return point.is_item and point.start < place


def _place(problem: Unclosed | Unmatched) -> int:
    return problem.closer if isinstance(problem, Unmatched) else problem.noticed
