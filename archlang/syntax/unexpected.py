"""What an unexpected token means, by what stands before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.names import did_you_mean, is_typing_error
from archlang.source import Span
from archlang.syntax import mistakes
from archlang.syntax.builders.parts import start_of
from archlang.syntax.early_ends import BINDERS
from archlang.syntax.expected import Expected
from archlang.syntax.form_place import Place
from archlang.syntax.grammar import spellings
from archlang.syntax.line_mistakes import END_OF_LINE
from archlang.syntax.meant_forms import meant_form
from archlang.syntax.misplaced_lines import misplaced_line
from archlang.syntax.outline import FOREIGN_ELSE_IF, ITEM_WORDS, RECIPE_WORDS, RESERVED, STATEMENT_WORDS, Point
from archlang.syntax.parser_stack import terminal
from archlang.syntax.progress import LONGEST_COMMENT, Progress

if TYPE_CHECKING:
    from lark import Token

_BINDER = re.compile(r"\s*(?:=(?!=)|<-)")
_WORD = re.compile(r"\w+")
_WORD_OF_LINE = re.compile(r"\w++(?!\s*:)")  # `:` follows a parameter
_MODEL_LINE = re.compile(r"model[ \t]+[A-Za-z_][\w.]*[ \t]*(?:\[[^\[\]]*\])?(?:\s|#[^\r\n]*)*+")
_LONGEST_ITEM = 20_000
_OPENERS = ("LPAR", "LSQB", "LBRACE")
_FOREIGN_SIGNS = {"//": mistakes.foreign_comment, "**": mistakes.power_operator, "->": mistakes.arrow_in_expression}
_WORDS_OF_LOOPS = ("scan", "experts", "after", "carry", "growing", "halting", "as", "by", "drawn", "truncated")
# Words before a name that are no blocks.
_NO_BLOCKS = (*RESERVED, *_WORDS_OF_LOOPS, "lambda")
_LOOP_IN_VALUE = re.compile(r"(?P<word>scan|experts)[ \t]+\Z")
# A block, with or without statics, before what may be its argument.
_BLOCK = re.compile(r"(?<=[\s(\[=,])([A-Za-z_][\w.]*(?:\[[^\[\]\r\n]*\]|(?=[ \t])))[ \t]*\Z")


class Unexpected:
    """Explains an unexpected token."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def explain(self, token: Token, name: Span | None) -> Diagnostic:
        """Returns the diagnostic of a token; `name` is the name before it."""
        accepted = self._progress.expected()
        if name is not None and set(accepted.phrases) <= {"`=`", "`<-`"} and self._progress.begins_statement(name):
            if name.text in FOREIGN_ELSE_IF:
                return mistakes.foreign_else_if(name)
            words = (*STATEMENT_WORDS, "else")
            near, keyword = did_you_mean(name.text, words), mistakes.keyword_without_space(name, words)
            if keyword is not None and (near is None or not is_typing_error(name.text, near, words)):
                return mistakes.keywords_without_space(name, keyword)
            if near is not None:
                return mistakes.misspelt_keyword(name, name.text, words)
        span = self._progress.span(token.start_pos or 0, token.end_pos or 0)
        if (
            token == "in"
            and name is not None
            and (loop := _LOOP_IN_VALUE.search(self._progress.text, max(0, name.start - 100), name.start))
        ):
            return mistakes.loop_in_value(self._progress.span(*loop.span("word")), loop["word"])
        if token in ("(", "|>") or accepted.phrases == ("a name",):
            let = self._progress.let()
            if let is not None and self._progress.same_line(let.start, span.start):
                return mistakes.let_of_other(let, span)
        if token in mistakes.OPERATORS_AFTER_PIPE and (pipe := self._pipe_before(span.start)) is not None:
            return mistakes.operator_after_pipe(span, pipe)
        if token == "else" and (condition := self._if_in_value(span.start)) is not None:
            return mistakes.if_in_value(condition, span)
        if token == ":" and "`{`" in accepted.phrases and END_OF_LINE.match(self._progress.text, span.end):
            return mistakes.colon_for_brace(span)
        is_in_recipe = self._progress.stack.brace_around() in (None, *self._progress.outline.recipes)
        around, is_keyword = self._progress.stack.bracket_around(), token in spellings().values()
        return (
            self._progress.in_recipe_line(token)
            or meant_form(self._place(span, accepted, name, around, is_in_recipe))
            or mistakes.unexpected_token(span, token, accepted, around, token in RESERVED, is_keyword, is_in_recipe)
        )

    def _place(self, token: Span, accepted: Expected, name: Span | None, around: str, is_in_recipe: bool) -> Place:
        begins_statement = name is not None and self._progress.begins_statement(name)
        after = self._progress.end_of_code(token.start)
        return Place(token, after, accepted, name, begins_statement, around, is_in_recipe)

    def _if_in_value(self, place: int) -> Span | None:
        """Returns the `if` after a value on the line of a place, as in `y = a if b else c`."""
        for value in reversed(self._progress.stack.values):
            if terminal(value) == "IF" and self._progress.same_line(start_of(value), place):
                word = self._progress.token_span(value)
                return None if self._progress.outline.is_first(word.start) else word
        return None

    def _pipe_before(self, place: int) -> Span | None:
        """Returns the place of the pipe that ends before an operator, if there is one."""
        values = self._progress.stack.values
        for index in range(len(values) - 1, 0, -1):
            kind = terminal(values[index])
            if kind == "PIPE":
                return self._progress.span(start_of(values[index - 1]), self._progress.end_of_code(place))
            if kind in _OPENERS or kind in ("EQUAL", "UPDATE"):
                return None
        return None

    def misplaced(self, place: int, name: Span | None) -> Diagnostic | None:
        """Returns a diagnostic for a line of a recipe or a table that stands elsewhere: the unexpected token at `place`
        begins it, or a name before that the parser takes for a value, or a `model` without inputs."""
        outline, around = self._progress.outline, self._progress.item_around()
        is_header = terminal(self._progress.stack.last) == "FROM" or "LBRACE" in self._progress.stack.accepted()
        if not around and is_header:
            return None  # the `{` of an item is missing
        model = None if around else self._model_without_inputs(place)
        token = _WORD.match(self._progress.text, place)
        words = [model, name, None if token is None else self._progress.span(*token.span())]
        for word in words:
            if (
                word is None
                or not outline.is_first(word.start)
                or not _WORD_OF_LINE.match(self._progress.text, word.start)
            ):
                continue
            if around or word is model or word.text != "model":
                items = (point.start for point in reversed(outline.points) if _is_item_before(point, word.start))
                diagnostic = misplaced_line(word, around, next(items, None))
                if word is not model or diagnostic is None or self._is_indented(model):
                    return diagnostic
                following = "" if token is None else self._progress.text[token.start() : token.end()]
                is_line = following in RECIPE_WORDS or (diagnostic.edits and following in ("", *ITEM_WORDS))
                return diagnostic if is_line else None
        return None

    def _model_without_inputs(self, place: int) -> Span | None:
        """Returns the word of a line such as `model gut[d = 8]` before a place, which is no definition; an indented
        one need not end before the place."""
        token = next((value for value in self._progress.stack.values[::-1] if terminal(value) == "MODEL"), None)
        if token is None:
            return None
        word = self._progress.token_span(token)
        is_line = _MODEL_LINE.fullmatch(self._progress.text, word.start, place)
        return word if is_line or (self._is_indented(word) and self._progress.stack.bracket_around() == "[") else None

    def _is_indented(self, word: Span) -> bool:
        line = self._progress.line_start(word.start)
        return line < word.start and self._progress.text[line : word.start].isspace()

    def unapplied(self, name: Span) -> Span | None:
        """Returns the block before a name with which no statement begins, as in `y = norm h`."""
        if self._progress.outline.is_first(name.start) or self._progress.stack.brace_around() in (
            None,
            *self._progress.outline.recipes,
        ):
            return None
        start = self._progress.line_start(name.start)
        block = _BLOCK.search(self._progress.text, max(start, name.start - LONGEST_COMMENT), name.start)
        is_block = block is not None and block[1] not in _NO_BLOCKS and not self._is_bound(block[1])
        return self._progress.span(*block.span(1)) if block is not None and is_block else None

    def _is_bound(self, name: str) -> bool:
        """Returns whether a name is an input, or bound with `=` or `<-`, in the item that the parser reads."""
        start = start_of(self._progress.stack.values[self._progress.stack.item])
        bound = re.compile(rf"(?<!let )\b{re.escape(name)}[ \t]*(?:=(?!=)|<-|:)")
        return bound.search(self._progress.text, start, start + _LONGEST_ITEM) is not None

    def foreign_sign(self, place: int) -> Diagnostic | None:
        """Returns the diagnostic of a sign that is no operator, one of whose characters is at `place`."""
        for start in (place - 1, place):
            sign = self._progress.text[max(start, 0) : start + 2]
            if sign in _FOREIGN_SIGNS:
                return _FOREIGN_SIGNS[sign](self._progress.span(start, start + 2))
        return None

    def reserved(self, token: Token) -> Span | None:
        """Returns the span of a reserved word that the text uses as a name: this token, or the one before it."""
        last = self._progress.stack.last
        if token in RESERVED and _BINDER.match(self._progress.text, token.end_pos or 0):
            return self._progress.token_span(token)
        is_keyword = isinstance(last, str) and last in RESERVED
        return self._progress.token_span(last) if is_keyword and token in BINDERS else None


def _is_item_before(point: Point, place: int) -> bool:
    return point.is_item and point.start < place
