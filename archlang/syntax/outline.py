"""Finds the unmatched brackets of a text with mistakes, and the places where parsing can resume."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field

ITEM_WORDS = ("use", "block", "model", "extern", "recipe", "table")
RECIPE_WORDS = ("task", "model", "train", "test", "vary", "search", "claim")
TABLE_WORDS = ("row", "column", "columns")
PART_WORDS = (*RECIPE_WORDS, *TABLE_WORDS)
STATEMENT_WORDS = ("let", "charge", "return", "emit", "if", "repeat", "stack")
# Words that cannot be names.
RESERVED = (*STATEMENT_WORDS, "else", "in", "when", "and", "or", "not", "true", "false")
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
# An unindented `model` can be a part of a recipe; only the `model` of an item has inputs.
MODEL_HEAD = re.compile(r"model\s+[A-Za-z_]\w*\s*(?:\[[^\[\]]*\]\s*)?\(")


@dataclass(frozen=True)
class Point:
    """The start of an item (`brace` is None), or of a statement, a recipe part or a `}` inside the brace at `brace`."""

    start: int
    brace: int | None


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

    @staticmethod
    def of(text: str) -> Outline:
        outline = Outline(text)
        outline._read()
        return outline

    def points_after(self, place: int) -> Iterator[Point]:
        for index in range(bisect_left(self.points, place, key=lambda point: point.start), len(self.points)):
            yield self.points[index]

    def is_first(self, place: int) -> bool:
        """Returns whether only space precedes a place on its line."""
        return self._indent(place) is not None

    def _read(self) -> None:
        for piece in _PIECE.finditer(self.text):
            if piece["bracket"]:
                if piece[0] in CLOSERS:
                    self._close(piece[0], piece.start())
                else:
                    self._push(piece[0], piece.start())
            elif piece["word"]:
                self._word(piece["word"], piece["binder"] or "", piece.start())
        if self._open:
            self._unclosed(len(self.text))

    def _push(self, opener: str, start: int) -> None:
        if opener == "{":
            self.around[start] = self._brace()
            # The word of the item may be misspelt.
            part = _PART.match(self.text, start + 1)
            if not self._open and (part is not None or self._item in ("recipe", "table")):
                self.recipes.add(start)
                if self._item == "table" if part is None else part["table"]:
                    self.tables.add(start)
        if len(self._open) < _DEEPEST:
            self._open.append((opener, start))

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
            indent = self._indent(start)
            if indent is not None and indent < self._line_indent(self._open[-1][1]):
                self._doubtful.append(self._open[-1][1])
        self._open.pop()

    def _word(self, word: str, binder: str, start: int) -> None:
        first = self._indent(start) is not None
        if word in ITEM_WORDS and first and self._begins_item(word, start):
            if self._open:
                self._unclosed(start)
            self._item = word
            self.points.append(Point(start, None))
            return
        if not self._open:
            return
        begins = word in STATEMENT_WORDS or bool(binder) or (word == "scan" and first)
        bracket = self._open[-1][0]
        if bracket == "{":
            is_part = word in PART_WORDS and first
            if is_part if self._brace() in self.recipes else begins:
                self.points.append(Point(start, self._brace()))
            return
        # Between brackets, `name =` can be a named static, so it does not show the start of a statement.
        begins = first and (word in STATEMENT_WORDS or "<-" in binder or (bool(binder) and bracket == "("))
        if begins and self._brace() is not None and self._brace() not in self.recipes:
            self._problem(Unclosed(self._open[-1][1], start))
            while self._open[-1][0] != "{":
                self._open.pop()
            self.points.append(Point(start, self._brace()))

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
        if len(self.problems) < _MOST:
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
