"""Assigns each comment of a file to a statement, an item or a closing brace."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Token

_SENTENCE = re.compile(r".*?[.?!](?= [A-Z`]|$)")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_SPACE = " \t\r\f\ufeff"
_BLANK = _SPACE + "\n"


class Comments:
    """The comments of one text, in order. Each comment is taken once, by the node that it belongs to."""

    def __init__(self, text: str, comments: Sequence[Token]) -> None:
        self._text = _LONE_RETURN.sub("\n", text)  # also a line end
        self._starts = [comment.start_pos or 0 for comment in comments]
        self._lines = [str(comment) for comment in comments]
        self._taken = [False] * len(comments)

    def above(self, start: int) -> tuple[tuple[str, ...], bool]:
        """Takes the comment lines directly above `start`, with `""` for the empty lines between, and returns whether an
        empty line precedes them."""
        lines: list[str] = []
        index = bisect_left(self._starts, start) - 1
        while index >= 0 and not self._taken[index]:
            before, newlines = self._code_before(start)
            if before > self._starts[index] + len(self._lines[index]):
                break
            own_line = self._code_before(self._starts[index], _SPACE)[0]
            after_brace = own_line > 0 and self._text[own_line - 1] == "{"
            if not (own_line == 0 or self._text[own_line - 1] == "\n" or after_brace):
                break
            if newlines > 1:
                lines.append("")
            lines.append(self._take(index))
            start = self._starts[index]
            index -= 1
            if after_brace:
                break
        before, newlines = self._code_before(start)
        return tuple(reversed(lines)), newlines > 1 and before > 0

    def beside(self, end: int) -> str:
        """Takes the comment that follows `end` on the same line; returns `""` if there is none."""
        index = bisect_left(self._starts, end)
        if index == len(self._starts) or self._taken[index]:
            return ""
        while self._text[end] in " \t":
            end += 1
        return self._take(index) if end == self._starts[index] else ""

    def within(self, start: int, end: int, follows: bool = False) -> tuple[str, ...]:
        """Takes the remaining comments between two places, with `""` for the empty lines between. An empty line before
        the first comment counts only if `follows`, that is, if code precedes the comments."""
        lines: list[str] = []
        for index in range(bisect_left(self._starts, start), bisect_left(self._starts, end)):
            if not self._taken[index]:
                if (lines or follows) and self._code_before(self._starts[index])[1] > 1:
                    lines.append("")
                lines.append(self._take(index))
        return tuple(lines)

    def _take(self, index: int) -> str:
        self._taken[index] = True
        return self._lines[index].rstrip()

    def _code_before(self, place: int, skipped: str = _BLANK) -> tuple[int, int]:
        """Returns the end of the code before a place, and the number of newlines between."""
        newlines = 0
        while place > 0 and self._text[place - 1] in skipped:
            place -= 1
            newlines += self._text[place] == "\n"
        return place, newlines


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text."""
    return [sentence[0].strip() for sentence in _SENTENCE.finditer(text)]


def first_sentence(documentation: Sequence[str]) -> str:
    """Returns the first sentence of a documentation, which may take several lines; empty if there is none."""
    paragraph = " ".join(takewhile(str.strip, documentation))
    sentence = _SENTENCE.match(paragraph)
    return paragraph if sentence is None else sentence[0]
