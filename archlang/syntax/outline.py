"""Finds the unmatched brackets of a text with mistakes, and the places where parsing can resume."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

ITEM_WORDS = ("use", "block", "model", "extern", "recipe", "table")
CHOICE_WORDS = ("task", "model", "train")
RECIPE_WORDS = (*CHOICE_WORDS, "test", "vary", "search", "claim")
TABLE_WORDS = ("row", "column", "columns")
# What can begin a line that continues a part of a recipe or a table, or the header of a block.
CONTINUING_WORDS = ("claims", "best", "from", "where")
CLAUSE_WORDS = (
    *("where", "reads", "depends", "random", "stops", "sizes", "costs", "maps", "records", "cuts", "gives", "pure"),
    *("causal", "with", "python"),
)
PART_WORDS = (*RECIPE_WORDS, *TABLE_WORDS)
STATEMENT_WORDS = ("let", "charge", "return", "emit", "if", "repeat", "stack")
# Words that cannot be names.
RESERVED = (*STATEMENT_WORDS, "else", "in", "when", "and", "or", "not", "true", "false")
# `else if` in other languages.
FOREIGN_ELSE_IF = ("elif", "elsif", "elseif")
CLOSERS = {")": "(", "]": "[", "}": "{"}
# Brackets nested deeper than this are not matched.
_DEEPEST = 200
# The largest number of problems that is recorded.
_MOST = 500

_PIECE = re.compile(
    r"""
      (?P<skipped> "[^"\r\n]*" | \#[^\r\n]* | else\s+if\b )
    | (?P<word> [A-Za-z_][A-Za-z0-9_.]* ) (?P<binder> \s* (?: =(?!=) | <- ) )?
    | (?P<bracket> [()\[\]{}] )
    """,
    re.VERBOSE,
)
# The first part of a recipe or a table; no statement begins so.
_PART = re.compile(
    r"""
    \s*+ (?: \#[^\r\n]*+ \s*+ )*+
    (?: (?P<table> row | columns? ) | task | model | train | test | vary | search | claim ) \s+ ["A-Za-z_]
    """,
    re.VERBOSE,
)
_COMMENT = re.compile(r"#[^\r\n]*")
# The end of code that the next line continues.
_IS_CONTINUED = re.compile(r"(?:[^\w\s)\]{}\"]|\b(?:at|from|in|of|by|carry|claims|median|and|or|not|when|else))\s*\Z")
# The first word of a line, or another character there.
_LINE = re.compile(r"^(?P<indent>[ \t]*+)(?!#)(?P<first>\S)", re.MULTILINE)
# An unindented `model` can be a part of a recipe; only the `model` of an item has inputs.
MODEL_HEAD = re.compile(r"model\s+[A-Za-z_]\w*\s*(?:\[[^\[\]]*\]\s*)?\(")
# A line of an extern with a clause that has the form of a value, after a line that ends before a value.
_TAKEN_CLAUSE = re.compile(
    r"""
    (?: [-+*/%=<>] | \breads[ \t]+\w+ | \b(?: where | not | into | on | records | and | or | when ) )
    [ \t]*+ (?: \#[^\r\n]*+ )?+ [\r\n]\s*+ (?: \#[^\r\n]*+ \s*+ )*+
    (?P<clause> random (?= (?: \s+in\s+training )? (?: \s+when\b | [ \t]*(?:\#|[\r\n]|\Z) ) )
              | pure (?= [ \t]*(?:\#|[\r\n]|\Z) ) )
    """,
    re.VERBOSE,
)


def taken_clause(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns the place of the first word of a clause such as `random in training` that begins a line of an extern
    between two places, and that the grammar takes for the value that is missing in the line before it."""
    clause = _TAKEN_CLAUSE.search(text, start, end)
    return None if clause is None else clause.span("clause")


@dataclass(frozen=True)
class Point:
    """The start of an item or of a clause of an extern (`brace` is None), or of a statement, a recipe part or a `}`
    inside the brace at `brace`. A line that `is_unknown` begins as none of these, though its indentation is theirs."""

    start: int
    brace: int | None
    is_clause: bool = False
    is_unknown: bool = False

    @property
    def is_item(self) -> bool:
        return self.brace is None and not self.is_clause


@dataclass(frozen=True)
class Unclosed:
    """An opening bracket without a closing one; `noticed` is the start of the item or outer bracket that shows it."""

    opener: int
    noticed: int


@dataclass(frozen=True)
class Unmatched:
    """A closing bracket without an opening one; `opener` is the innermost open bracket, if any."""

    closer: int
    opener: int | None


@dataclass
class Outline:
    """The brackets, items and statements of a text, found in one pass without the grammar."""

    text: str
    points: list[Point] = field(default_factory=list)
    problems: list[Unclosed | Unmatched] = field(default_factory=list)
    # `around` maps each brace to the enclosing one; `recipes` are the braces of recipes and tables.
    around: dict[int, int | None] = field(default_factory=dict)
    recipes: set[int] = field(default_factory=set)
    tables: set[int] = field(default_factory=set)
    _open: list[tuple[str, int]] = field(default_factory=list)
    _item: str = ""
    # Braces whose closing brace is indented less than their own line.
    _doubtful: list[int] = field(default_factory=list)
    # The start of the last line, which may have a body, until a `{`.
    _header: int | None = None
    # The end of the open bracket in whose lines no body begins.
    _bracket_end: int = 0
    # The indentation of the first line of each body.
    _body_indents: dict[int, int] = field(default_factory=dict)
    # The start of the last word, string or bracket.
    _last: int = 0
    # The next line that is not indented deeper, by the start of each line.
    _next_lines: dict[int, int] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> Outline:
        outline = Outline(text, _next_lines=_next_lines(text))
        outline._read()
        return outline

    def points_after(self, place: int) -> Iterator[Point]:
        for index in range(bisect_left(self.points, place, key=lambda point: point.start), len(self.points)):
            yield self.points[index]

    def item_after(self, place: int) -> int:
        """Returns the start of the next item after the one at a place; the end of the text if it is the last."""
        return next((point.start for point in self.points_after(place + 1) if point.is_item), len(self.text))

    def lines_between(self, start: int, end: int) -> Iterator[int]:
        """Yields the places of the first words of the lines between two places."""
        return (line.start("first") for line in _LINE.finditer(self.text, start, end))

    def continued_part(self, place: int) -> Point | None:
        """Returns the clause of an extern, or the part of a recipe or a table, that a line continues, as it is indented
        deeper; None if it continues none."""
        index = bisect_left(self.points, place, key=lambda point: point.start) - 1
        part = self.points[index] if index >= 0 else None
        if part is None or not (part.is_clause or part.brace in self.recipes):
            return None
        return part if (self._indent(place) or 0) > self._line_indent(part.start) else None

    def is_first(self, place: int) -> bool:
        """Returns whether only space precedes a place on its line."""
        return self._indent(place) is not None

    def begins_line(self, place: int) -> bool:
        """Returns whether an item, a statement, a part or a `}` begins at a place, and only space precedes it."""
        point = next(self.points_after(place), None)
        return point is not None and point.start == place and not point.is_unknown and self.is_first(place)

    def _read(self) -> None:
        for piece in _PIECE.finditer(self.text):
            if piece[0].startswith("#"):
                continue
            if piece["bracket"]:
                if piece[0] in CLOSERS:
                    self._close(piece[0], piece.start())
                else:
                    self._push(piece[0], piece.start())
            elif piece["word"]:
                self._word(piece["word"], piece["binder"] or "", piece.start())
            self._last = piece.start()
        if self._open:
            self._unclosed(len(self.text))

    def _push(self, opener: str, start: int) -> None:
        if opener == "{":
            self._header = None
            self._begin_body(start, start + 1)
        if len(self._open) < _DEEPEST:
            self._open.append((opener, start))

    def _begin_body(self, brace: int, start: int) -> None:
        self.around[brace] = self._brace()
        # The word of the item may be misspelt.
        part = _PART.match(self.text, start)
        if not self._open and (part is not None or self._item in ("recipe", "table")):
            self.recipes.add(brace)
            if self._item == "table" if part is None else part["table"]:
                self.tables.add(brace)

    def _close(self, closer: str, start: int) -> None:
        opener = CLOSERS[closer]
        openers = [bracket for bracket, _ in self._open]
        if closer != "}" and "{" in openers:
            openers = openers[len(openers) - openers[::-1].index("{") :]
        if not openers:
            self._problem(Unmatched(start, None))
        elif openers[-1] == opener:
            self._match(closer, start)
        elif opener in openers:
            self._problem(Unclosed(self._open[-1][1], start))
            while self._open[-1][0] != opener:
                self._open.pop()
            self._match(closer, start)
        elif closer == "}":
            # No brace is open, so the open bracket belongs to a signature, which continues.
            self._problem(Unmatched(start, self._open[-1][1]))
        else:
            self._problem(Unmatched(start, self._open.pop()[1]))

    def _match(self, closer: str, start: int) -> None:
        if closer == "}":
            self.points.append(Point(start, self._open[-1][1]))
            indent, opener = self._indent(start), self._open[-1][1]
            # The body of an item may begin in an indented line of its header.
            if indent is not None and indent < self._line_indent(opener) and self.around[opener] is not None:
                self._doubtful.append(opener)
        self._open.pop()

    def _word(self, word: str, binder: str, start: int) -> None:
        first = self._indent(start) is not None
        if first and self._lacks_brace(word, binder, start):
            # The first word of the body stands for its brace.
            outer = self._brace()
            if self._open and self._open[-1][0] != "{":
                self._problem(Unclosed(self._open[-1][1], start))
            while self._open and self._open[-1][1] != outer:
                self._open.pop()
            self._begin_body(start, start)
            self._open.append(("{", start))
        if first and word != "where" and (not self._open or self._open[-1][0] == "{"):
            self._header = start
        if word == "else" and self.text[start - 2 : start] == "} " and self._indent(start - 2) is not None:
            self._header = start - 2
        if word in ITEM_WORDS and first and self._begins_item(word, start):
            if self._open:
                self._unclosed(start)
            self._item = word
            self.points.append(Point(start, None))
            return
        if first and word == "where" and self._open and self._item in ("block", "model") and self._brace() is None:
            self._unclosed(start)
        if first and self._begins_clause(word, binder, start):
            if self._open:
                self._unclosed(start)
            self.points.append(Point(start, None, is_clause=True))
        if not self._open:
            return
        bracket = self._open[-1][0]
        binds = bool(binder) and not (bracket == "{" and self._continues_list(start))
        begins = word in STATEMENT_WORDS or binds or (word == "scan" and first)
        if bracket == "{":
            if first:
                self._body_indents.setdefault(self._open[-1][1], self._indent(start) or 0)
            # `model = name` is a mistake in one line of a recipe, but deeper than its parts it is a static.
            is_choice = word in CHOICE_WORDS and self._indent(start) == self._body_indents.get(self._open[-1][1])
            is_part = word in PART_WORDS and first and (not binder or is_choice)
            if is_part if self._brace() in self.recipes else begins:
                self.points.append(Point(start, self._brace()))
            elif first and self._is_unknown_line(word, start):
                self.points.append(Point(start, self._brace(), is_unknown=True))
            return
        if first and self._brace() is not None and self._begins_line(word, binder, start):
            self._problem(Unclosed(self._open[-1][1], start))
            while self._open[-1][0] != "{":
                self._open.pop()
            self.points.append(Point(start, self._brace()))

    def _continues_list(self, start: int) -> bool:
        """Returns whether a comma precedes a `name =` in a body: it is a static in a list without its bracket, unless
        it begins a line that is indented as the body."""
        before = start
        while before > 0 and self.text[before - 1] in " \t\r\n":
            before -= 1
        brace, indent = self._brace(), self._indent(start)
        is_deeper = indent is None or (brace is not None and indent > self._body_indents.get(brace, indent))
        return is_deeper and self.text[before - 1 : before] == ","

    def _is_unknown_line(self, word: str, start: int) -> bool:
        """Returns whether a line in a body is neither a known one nor continues the line before it."""
        brace = self._brace()
        is_as_deep = brace is not None and self._indent(start) == self._body_indents[brace]
        is_word = word not in (*RESERVED, *CONTINUING_WORDS, "at", "by", "carry")
        return is_as_deep and is_word and not self._is_continued(start)

    def _is_continued(self, start: int) -> bool:
        """Returns whether the code before the line that begins at a place ends before a value."""
        return _IS_CONTINUED.search(_COMMENT.sub("", self.text[self._last : start])) is not None

    def _begins_line(self, word: str, binder: str, start: int) -> bool:
        """Returns whether the first word of a line between brackets begins a statement, or a part of a recipe."""
        brace = self._brace()
        outer = next(bracket for bracket in self._open if brace is not None and bracket[1] > brace)
        is_outside = (self._indent(start) or 0) <= self._line_indent(outer[1])
        if brace in self.recipes:
            return word in PART_WORDS and is_outside
        # `name =` can be a named static, unless the line is not indented.
        return word in STATEMENT_WORDS or "<-" in binder or (bool(binder) and (self._open[-1][0] == "(" or is_outside))

    def _lacks_brace(self, word: str, binder: str, start: int) -> bool:
        """Returns whether a line begins the body of the header before it, which has no `{`: the line is indented
        deeper, and a `}` ends the deeper lines."""
        header = self._header
        if header is None or start < self._bracket_end or len(self._open) >= _DEEPEST:
            return False
        if not (binder or word in STATEMENT_WORDS or word in PART_WORDS):
            return False
        indent = self._indent(header) or 0
        end = self._next_lines.get(header, len(self.text))
        while end < start and self.text[end] in ")]":
            # A header of several lines.
            end = self._next_lines.get(end, len(self.text))
        is_deeper = (self._indent(start) or 0) > indent
        if not is_deeper or self._indent(end) != indent or self.text[end : end + 1] != "}":
            return False
        self._bracket_end = self._end_of_bracket(start, end) if self._open and self._open[-1][0] != "{" else 0
        return start >= self._bracket_end

    def _end_of_bracket(self, start: int, end: int) -> int:
        """Returns the end of the bracket that is open at `start`, 0 if no bracket before `end` closes it."""
        depth = 1
        for piece in _PIECE.finditer(self.text, start, end):
            if piece["bracket"]:
                depth += -1 if piece[0] in CLOSERS else 1
                if depth == 0:
                    return piece.end()
        return 0

    def _begins_clause(self, word: str, binder: str, start: int) -> bool:
        """Returns whether the first word of a line begins a clause of an extern."""
        is_clause = self._item == "extern" and word in CLAUSE_WORDS and not binder and self._brace() is None
        return is_clause and not self.text.startswith(":", start + len(word))

    def _begins_item(self, word: str, start: int) -> bool:
        if not self._open:
            return True
        if self._indent(start) != 0:
            return False
        return word != "model" or self._brace() not in self.recipes or MODEL_HEAD.match(self.text, start) is not None

    def _unclosed(self, noticed: int) -> None:
        first_open = self._open[0][1]
        opener = next((brace for brace in self._doubtful if brace > first_open), self._open[-1][1])
        self._problem(Unclosed(opener, noticed))
        self._open.clear()

    def _problem(self, problem: Unclosed | Unmatched) -> None:
        # A brace that is missing, for which the first word of its body stands, was noticed.
        is_missing = isinstance(problem, Unclosed) and self.text[problem.opener] not in CLOSERS.values()
        if len(self.problems) < _MOST and not is_missing:
            self.problems.append(problem)

    def _brace(self) -> int | None:
        return next((start for bracket, start in reversed(self._open) if bracket == "{"), None)

    def _indent(self, place: int) -> int | None:
        """Returns the column of a place if only space precedes it on its line, else None."""
        begin = place
        while begin > 0 and self.text[begin - 1] in " \t\ufeff":
            begin -= 1
        return place - begin if begin == 0 or self.text[begin - 1] in "\r\n" else None

    def _line_indent(self, place: int) -> int:
        begin = max(self.text.rfind("\n", 0, place), self.text.rfind("\r", 0, place)) + 1
        line = self.text[begin:place]
        return len(line) - len(line.lstrip())


def _next_lines(text: str) -> dict[int, int]:
    """Returns the start of the next line that is not indented deeper, by the start of each line that has one. The start
    of a line is that of its first word."""
    following: dict[int, int] = {}
    deeper: list[tuple[int, int]] = []
    for line in _LINE.finditer(text):
        indent, start = len(line["indent"]), line.start("first")
        while deeper and deeper[-1][0] >= indent:
            following[deeper.pop()[1]] = start
        deeper.append((indent, start))
    return following
