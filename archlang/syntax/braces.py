"""Finds the braces of a text that its indentation shows to be extra, and a missing `else {`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes

_BRACE = re.compile(r'"[^"\r\n]*"|\#[^\r\n]*|(?P<brace>[{}])')
_LINE = re.compile(r"^(?P<indent>[ \t]*+)(?!#)(?P<code>\S[^\r\n]*)", re.MULTILINE)
_IF = re.compile(r"(?:\} else )?if\b")
_ELSE = "else{"
_HALF_ELSE = re.compile(r"\}[ \t]*(?:e|el|els|else\b[^{}]*)?")


@dataclass(frozen=True)
class _Line:
    start: int
    end: int
    indent: int
    code: str

    @property
    def closes(self) -> bool:
        return self.code.startswith("}")


@dataclass
class _Braces:
    """The open braces of a text, each by the index of its line, and the mistakes that the indentation shows."""

    source: Source
    text: str
    lines: list[_Line]
    open: list[int]
    mistakes: list[Diagnostic]

    def read(self) -> None:
        for index, line in enumerate(self.lines):
            for brace in _BRACE.finditer(self.text, line.start, line.end):
                if brace["brace"] == "{":
                    self.open.append(index)
                elif brace["brace"] == "}" and self.open:
                    self._close(index, brace.start())

    def _close(self, index: int, place: int) -> None:
        opener, line = self.open[-1], self.lines[index]
        is_last = self.open.count(opener) == 1 and opener < index
        is_deeper = line.indent > self.lines[opener].indent
        if is_last and is_deeper and self._is_closed_after(opener, index):
            self.mistakes.append(mistakes.unmatched_closer(Span(self.source, place, place + 1), None))
            self.text = f"{self.text[:place]} {self.text[place + 1 :]}"
            return
        self.open.pop()
        is_if = _IF.match(self.lines[opener].code) is not None and _HALF_ELSE.fullmatch(line.code) is not None
        if is_if and not is_deeper and self._is_closed_after(index, index) and self._has_deeper_line(index):
            end = line.start + len(line.code)
            self.mistakes.append(mistakes.else_missing(Span(self.source, place, end)))
            rest = " " * (end - place - 1)
            self.text = f"{self.text[: place + 1]}{rest}{self.text[end:]}"
            self.text = f"{self.text[: place + 1]}{_ELSE}{self.text[place + 1 + len(_ELSE) :]}"
            self.open.append(index)

    def _has_deeper_line(self, index: int) -> bool:
        following = self.lines[index + 1] if index + 1 < len(self.lines) else None
        room = "" if following is None else self.text[self.lines[index].end : following.start]
        is_deeper = following is not None and following.indent > self.lines[index].indent
        return is_deeper and len(room) >= len(_ELSE) and room.isspace()

    def _is_closed_after(self, opener: int, index: int) -> bool:
        """Returns whether the first line after a line that is not indented deeper than the line of an open brace begins
        with a `}` of the same indentation."""
        indent = self.lines[opener].indent
        after = next((line for line in self.lines[index + 1 :] if line.indent <= indent), None)
        return after is not None and after.indent == indent and after.closes


def repair_braces(source: Source, text: str) -> tuple[str, list[Diagnostic]]:
    """Returns a text with a space in place of each extra `}`, and with `else{` in place of the space after a `}` where
    it is missing, and the mistakes."""
    lines = [
        _Line(line.start("code"), line.end(), len(line["indent"]), line["code"].partition("#")[0].rstrip())
        for line in _LINE.finditer(text)
    ]
    braces = _Braces(source, text, lines, [], [])
    braces.read()
    return braces.text, braces.mistakes
