"""Resumes parsing after a mistake: at the next parameter, clause, statement, part or item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archlang.syntax.builders.parts import end_of, start_of
from archlang.syntax.half_headers import HalfHeader
from archlang.syntax.outline import Outline, Point
from archlang.syntax.parser_stack import ParserStack, terminal

if TYPE_CHECKING:
    from lark.parsers.lalr_interactive_parser import InteractiveParser

# Tokens that replace a header whose name could not be read, so that its body is parsed.
_RECIPE = (("RECIPE", "recipe"), ("NAME", ""))
_TABLE = (("TABLE", "table"), ("NAME", ""))
_BLOCK = (("BLOCK", "block"), ("NAME", ""), ("ARROW", "->"), ("NAME", ""))
# The terminals with which a statement begins whose value can be missing.
_HEADS = (
    ("NAME", "EQUAL"),
    ("NAME", "UPDATE"),
    ("LET", "NAME", "EQUAL"),
    ("CHARGE", "NAME", "EQUAL"),
    ("RETURN",),
    ("EMIT",),
)


class Resumption:
    """Moves a parser from a mistake to the next place where it can read on. Substitutes stand for the skipped text."""

    def __init__(self, run: InteractiveParser, stack: ParserStack, text: str) -> None:
        self._run = run
        self._stack = stack
        self._text = text
        self.place = -1
        """the last place where parsing has resumed"""

    def move_to(self, place: int) -> None:
        """Lets the parser read on at a place."""
        state = self._run.lexer_thread.state
        assert state is not None, "the lexer has a text"
        state.line_ctr.char_pos = place

    def resume(self, place: int, outline: Outline, start: int | None = None) -> None:
        """Resumes parsing at the first possible place that is not before `place`, and after the last one. A line begins
        at `start` that a rule has read, which the text before `place` does not complete."""
        self._stack.drop_from(place)
        if self._resume_in_header(place, outline):
            return
        for point in outline.points_after(max(place, self.place + 1)):
            if self._enter_point(point, min(place if start is None else start, point.start), outline):
                self._resume_at(point.start)
                return
        self.finish()

    def finish(self) -> None:
        """Moves to the end of the text, where the last item is complete."""
        self._complete_item(len(self._text))
        self.move_to(len(self._text))

    def _resume_at(self, place: int) -> None:
        self.place = place
        self.move_to(place)

    def _resume_in_header(self, place: int, outline: Outline) -> bool:
        """Resumes parsing at the next line of the parameters of a header; returns whether there is one."""
        header = HalfHeader.of(self._stack, self._text)
        if header is None:
            return False
        place = max(place, self.place + 1)
        end = next((point.start for point in outline.points_after(place)), len(self._text))
        parameter = header.next_parameter(outline.lines_between(place, end), end)
        if parameter is None or parameter <= self.place:
            return False
        header.skip_to(parameter)
        self._resume_at(parameter)
        return True

    def _enter_point(self, point: Point, start: int, outline: Outline) -> bool:
        """Brings the parser to a point, and returns whether it could. The text from `start` to the point is skipped."""
        if not point.is_clause:
            return self._enter(point.brace, start, point.start, outline)
        header = HalfHeader.of(self._stack, self._text)
        if header is None or not header.is_extern:
            return False
        if not self._is_line_complete(start, self._stack.item - 1, outline):
            start = min(start, header.last_clause() or start)
            header.close(point.start)
        end = len(self._text[: point.start].rstrip())
        self._stack.feed([("MISSING_LINE", self._text[start:end])], start, end)
        return True

    def _complete_item(self, place: int) -> None:
        """Completes the item that the parser has begun; drops it if its name could not be read."""
        header = HalfHeader.of(self._stack, self._text)
        if header is not None:
            header.complete(place)
        for brace in reversed(self._stack.open_braces()):
            if "MISSING_LINE" not in self._stack.accepted():
                dropped = self._stack.cut(brace + 1)
                if dropped:
                    start, end = start_of(dropped[0]), len(self._text[:place].rstrip())
                    self._stack.feed([("MISSING_LINE", self._text[start:end])], start, end)
            self._stack.feed([("MISSING_LINE", ""), ("RBRACE", "}")], place)
        if "$END" not in self._stack.accepted():
            self._stack.cut(0)

    def _enter(self, brace: int | None, start: int, end: int, outline: Outline, is_header: bool = False) -> bool:
        """Brings the parser into the body that begins at `brace` (None: the file), and returns whether it could. If the
        header has a mistake, it feeds a substitute. The text from `start`, or from the incomplete statement before it,
        to `end` is skipped; it may be the header of a body."""
        if brace is None:
            self._complete_item(end)
            return True
        for index in self._stack.open_braces():
            if self._stack.values[index].start_pos == brace:
                is_complete = self._is_line_complete(start, index, outline)
                dropped = [] if is_complete else self._stack.cut(self._first_unread(index + 1))
                self._feed_missing(dropped, max(start, brace + 1), end, is_header)
                return True
        outer = outline.around[brace]
        if outer is None:
            self._feed_header(brace, outline)
        elif outer in outline.recipes or not self._enter(outer, start, brace, outline, is_header=True):
            return False
        if "LBRACE" not in self._stack.accepted():
            return False
        self._stack.feed([("LBRACE", "{")], brace, brace + 1)
        return True

    def _first_unread(self, index: int) -> int:
        """Returns the index of the first value that cannot be kept of the line that begins there, or after the complete
        lines there: a row without its published numbers is one, too, and so are the first parts of `vary`."""
        kinds = [terminal(value) for value in self._stack.values[index:]]
        has_recipe = ["ROW", "STRING", "NAME"] in (kinds[:3], kinds[1:4])
        if has_recipe and "CLAIMS" in kinds:
            return index + kinds.index("CLAIMS")
        if not {"VARY", "SEARCH"}.isdisjoint(kinds[:2]):
            brackets = [each for each in self._stack.open_brackets() if each > index]
            commas = [each for each, kind in enumerate(kinds, index) if kind == "COMMA"]
            return next((each for each in commas[::-1] if not brackets or each < brackets[0]), index)
        return index

    def _feed_header(self, brace: int, outline: Outline) -> None:
        """Completes the header of the item whose body begins at a brace, or feeds a substitute for it."""
        header = HalfHeader.of(self._stack, self._text)
        if header is not None and outline.item_after(header.start) > brace:
            header.close(brace)
            return
        self._complete_item(brace)
        kind = _TABLE if brace in outline.tables else _RECIPE if brace in outline.recipes else _BLOCK
        self._stack.feed(kind, brace, brace + 1)

    def _is_line_complete(self, place: int, index: int, outline: Outline) -> bool:
        """Returns whether what the parser has read after a value of its stack ends before a line that begins at
        `place`."""
        from lark import Tree

        if self._stack.lacks_statics(self._text, place):
            return False
        inner = self._stack.values[index + 1 :]
        is_inside = all(brace <= index for brace in self._stack.open_braces())
        is_before = not inner or isinstance(inner[-1], Tree) or end_of(inner[-1]) <= place
        return is_inside and is_before and outline.is_first(place) and "MISSING_LINE" in self._stack.accepted()

    def _feed_missing(self, dropped: list[Any], start: int, end: int, is_header: bool) -> None:  # Any: tokens and nodes
        """Feeds a substitute for the skipped text from `start`, or from the values dropped before it, to `end`. If the
        values begin a statement such as `y =` or `return`, its value is missing."""
        if dropped:
            start = min(start, start_of(dropped[0]))
        end = len(self._text[:end].rstrip())
        if start >= end and not is_header:
            return
        kinds = [terminal(value) for value in dropped[:3]]
        heads = (("IF",),) if is_header else _HEADS
        head = next((head for head in heads if kinds[: len(head)] == [*head]), ())
        for token in dropped[: len(head)]:
            self._stack.feed_token(token)
        self._stack.feed([("MISSING" if head else "MISSING_LINE", self._text[start:end])], start, end)
