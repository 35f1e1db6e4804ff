"""Completes the header of an item that breaks off, so that the rest of the item can be parsed: substitutes without a
name stand for what is missing."""

from __future__ import annotations

import re
from collections.abc import Iterable

from archlang.syntax.outline import CLAUSE_WORDS
from archlang.syntax.parser_stack import ParserStack, terminal

_NAME = ("NAME", "")
_STATIC = (_NAME, ("EQUAL", "="), ("MISSING", ""))
_INPUT = (_NAME, ("COLON", ":"), _NAME)
_INPUTS: tuple[tuple[str, str], ...] = (("LPAR", "("), *_INPUT, ("RPAR", ")"))
_RESULT = (("ARROW", "->"), _NAME)
_PYTHON = (("PYTHON", "python"), ("STRING", '""'))
_CLOSERS = {"LSQB": ("RSQB", "]"), "LPAR": ("RPAR", ")")}
_ITEMS = ("BLOCK", "MODEL", "EXTERN", "RECIPE", "TABLE")
_CLAUSES = frozenset(word.upper() for word in CLAUSE_WORDS)
_BRACKET = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|[()\[\]]')
_PARAMETER = re.compile(r"[A-Za-z_]\w*\s*(?::|=(?!=))")


def is_in_header(stack: ParserStack) -> bool:
    """Returns whether the stack of a parser ends within the header of an item."""
    kinds = [terminal(value) for value in stack.values[stack.item :]]
    return kinds[:1] != [] and kinds[0] in _ITEMS and "LBRACE" not in kinds and "$END" not in stack.accepted()


class HalfHeader:
    """The header of an item, whose name was read, and after which the stack of a parser ends."""

    def __init__(self, stack: ParserStack, text: str) -> None:
        self._stack = stack
        self._text = text

    @staticmethod
    def of(stack: ParserStack, text: str) -> HalfHeader | None:
        """Returns the header on a stack; None if the parser is not in a header, or has not read its name."""
        header = HalfHeader(stack, text)
        kinds = header._kinds
        # A name at the end may be cut too.
        has_name = "NAME" in kinds[1:3] and kinds.index("NAME") < len(kinds) - 1
        return header if has_name and is_in_header(stack) else None

    @property
    def start(self) -> int:
        """The place where the item begins."""
        place: int = self._stack.values[self._stack.item].start_pos
        return place

    @property
    def is_extern(self) -> bool:
        return self._kinds[0] == "EXTERN"

    @property
    def _kinds(self) -> list[str | None]:
        return [terminal(value) for value in self._stack.values[self._stack.item :]]

    # Parameters

    def next_parameter(self, lines: Iterable[int], end: int) -> int | None:
        """Returns the first of the places at which `lines` begin where the parameters go on, or the place of the
        bracket before `end` that closes them before; None if they do not go on."""
        opener = self._opener()
        if opener is None or "ARROW" in self._kinds:
            return None
        _, bracket = _CLOSERS[self._kinds[opener] or ""]
        closer = self._closer(self._stack.values[self._stack.item + opener].start_pos, end)
        for line in lines:
            if closer is not None and closer < line:
                return closer
            if self._text[line] == bracket or _PARAMETER.match(self._text, line):
                return line
        return closer

    def _closer(self, opener: int, end: int) -> int | None:
        """Returns the place of the bracket that closes another one; None if it is not before `end`."""
        closers: list[str] = []
        for bracket in _BRACKET.finditer(self._text, opener, end):
            if bracket[0] in ("(", "["):
                closers.append({"(": ")", "[": "]"}[bracket[0]])
            elif bracket[0] in (")", "]") and bracket[0] != closers.pop():
                return None
            if not closers:
                return bracket.start()
        return None

    def skip_to(self, parameter: int) -> None:
        """Puts a substitute in place of the parameter that breaks off before the next one, or a closing bracket."""
        self._drop_parameter(parameter)
        if self._text[parameter] not in ")]":
            self._feed([("COMMA", ",")], parameter)

    def _drop_parameter(self, place: int) -> str | None:
        """Puts a substitute in place of the parameter that breaks off. Returns the terminal of the open bracket; None
        if the parameters are complete, or do not begin yet."""
        opener = self._opener()
        if opener is None:
            return None
        kinds = self._kinds
        commas = [index for index in range(opener, len(kinds)) if kinds[index] == "COMMA" and self._depth(index) == 1]
        self._drop(max([opener, *commas]) + 1)
        self._feed(_STATIC if kinds[opener] == "LSQB" else _INPUT, place)
        return kinds[opener]

    def _opener(self) -> int | None:
        """Returns the index of the outermost open bracket."""
        openers: list[int] = []
        for index, kind in enumerate(self._kinds):
            if kind in _CLOSERS:
                openers.append(index)
            elif kind in ("RSQB", "RPAR"):
                openers.pop()
        return openers[0] if openers else None

    def _depth(self, end: int) -> int:
        kinds = self._kinds[:end]
        return sum(kind in _CLOSERS for kind in kinds) - kinds.count("RSQB") - kinds.count("RPAR")

    # Completion

    def last_clause(self) -> int | None:
        """Returns the place of the clause that breaks off; None if there is none."""
        clauses = (value for value in self._stack.values[self._stack.item :] if terminal(value) in _CLAUSES)
        return next((clause.start_pos for clause in clauses), None)

    def close(self, place: int) -> None:
        """Completes the header up to its `{`, or up to the clauses of an extern. The part before the one that is
        missing may break off too, so a substitute takes its place."""
        kinds = self._kinds
        if kinds[0] in ("RECIPE", "TABLE"):
            self._close_source(place)
            return
        clause = next((index for index, kind in enumerate(kinds) if kind in _CLAUSES), None)
        if clause is not None:
            self._drop(clause)
        elif "ARROW" not in kinds:
            self._close_parameters(place)
        elif kinds[kinds.index("ARROW") + 1 :] != [None, None]:  # the result and clauses of an extern
            self._drop(kinds.index("ARROW"))
            self._feed(_RESULT, place)

    def complete(self, place: int) -> None:
        """Completes an extern without its class, and any other item with an empty body."""
        if not self.is_extern:
            self.close(place)
            self._feed([("LBRACE", "{"), ("MISSING_LINE", ""), ("RBRACE", "}")], place)
            return
        if "MISSING_LINE" not in self._stack.accepted():
            self.close(place)
        if self._kinds[1] != "SETTINGS":
            self._feed(_PYTHON, place)

    def _close_source(self, place: int) -> None:
        """Completes what follows the name of a recipe or a table: its base or its source."""
        kinds = self._kinds
        has_source = kinds[2:] in (["FROM", "NAME"], ["FROM", "STRING"]) and self._is_on_one_line()
        self._drop(4 if has_source else 2)
        if kinds[0] == "RECIPE" and not has_source:
            self._feed([("FROM", "from"), _NAME], place)

    def _is_on_one_line(self) -> bool:
        end: int = self._stack.values[-1].end_pos
        return "\n" not in self._text[self.start : end]

    def _close_parameters(self, place: int) -> None:
        opener = self._drop_parameter(place)
        if opener is not None:
            self._feed([_CLOSERS[opener]], place)
        inputs = () if opener == "LPAR" or (opener is None and self._ends_with(")")) else _INPUTS
        if not self.is_extern or self._kinds[1] in ("BLOCK", "TASK"):
            self._feed([*inputs, *_RESULT], place)

    def _ends_with(self, bracket: str) -> bool:
        """Returns whether the last thing that was read is a bracket."""
        last = self._stack.last
        end = getattr(last, "end", None) if terminal(last) is None else getattr(last, "end_pos", None)
        return isinstance(end, int) and self._text[end - 1 : end] == bracket

    def _drop(self, count: int) -> None:
        self._stack.drop(self._stack.item + count)

    def _feed(self, terminals: Iterable[tuple[str, str]], place: int) -> None:
        self._stack.feed(terminals, place)
