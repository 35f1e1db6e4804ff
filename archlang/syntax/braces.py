"""Finds the braces of a text that its indentation shows to be extra or missing, and a missing `else {`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes

_BRACKET = re.compile(r'"[^"\r\n]*"|\#[^\r\n]*|(?P<brace>[{}])|(?P<bracket>[()\[\]])')
_LINE = re.compile(r"^(?P<indent>[ \t]*+)(?!#)(?P<code>\S[^\r\n]*)", re.MULTILINE)
_IF = re.compile(r"(?:\} else )?if\b")
_DEFINITION = re.compile(r"(?:block|model)\b")
_STATEMENT = re.compile(r"[ \t]*(?:(?:if|repeat|stack)\b|[A-Za-z_]\w*[ \t]*=)")
# The first line of a body: a static after `name =` ends with a comma.
_BODY = re.compile(r"(?:let|if|repeat|stack|return)\b|[A-Za-z_]\w*[ \t]*(?:<-|=[^\r\n]*(?<![,\r\n])\Z)")
# A header that ends with a colon, as in Python.
_COLON_HEADER = re.compile(r"^[ \t]+[^\s#][^#\r\n]*:[ \t]*$", re.MULTILINE)
_IF_ZERO = "if 0{"
_LOOP = "repeat 1{"
_FOREIGN_LOOP = re.compile(r"(?:for|while)\b")
_ELSE, _ELSE_IF = "else{", "else if true{"
_CLOSED_BY_ELSE = re.compile(r"\}[ \t]*else\b")
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
    """The open braces of a text, each with the index of its line, and the mistakes that the indentation shows. If
    `adds`, these are also braces that are missing, but for lines whose mistakes are known."""

    source: Source
    text: str
    lines: list[_Line]
    adds: bool
    mistaken_lines: frozenset[int]
    open: list[tuple[int, int]] = field(default_factory=list)
    mistakes: list[Diagnostic] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    """the places of `{` that were added"""
    closed: dict[int, int] = field(default_factory=dict)
    """the places of `}` that were added, and the line before each"""
    header: tuple[int, ...] = ()
    """the last lines of a header that lacks its `{`, and the next one"""
    replaced: list[int] = field(default_factory=list)
    """the lines in place of which `if 0{` stands"""
    conditions: list[int] = field(default_factory=list)
    """the places of the `if` that were added"""
    is_balanced: bool = True
    # For each line the next one that is not indented deeper.
    _following: list[int | None] = field(default_factory=list)
    # The indentation of the statement of each line, which begins before the brackets that are open there.
    _indents: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._following = [None] * len(self.lines)
        deeper: list[int] = []
        for index, line in enumerate(self.lines):
            while deeper and self.lines[deeper[-1]].indent >= line.indent:
                self._following[deeper.pop()] = index
            deeper.append(index)

    def read(self) -> None:
        depth = 0
        header = self._half_header() if self.adds else None
        for index, line in enumerate(self.lines):
            depth = depth if depth and line.indent > self._indents[-1] else 0
            self._indents.append(self._indents[-1] if depth else line.indent)
            if self.adds and depth == 0:
                self._close_before(index)
            for bracket in _BRACKET.finditer(self.text, line.start, line.end):
                if bracket["brace"] == "{":
                    depth = 0
                    self.open.append((index, bracket.start()))
                elif bracket["brace"] == "}" and self.open:
                    depth = 0
                    self._close(index, bracket.start())
                elif bracket["brace"] == "}":
                    self.is_balanced = False
                elif bracket["bracket"]:
                    depth = max(0, depth + (1 if bracket["bracket"] in "([" else -1))
            if header and index == header[-1]:
                depth = 0
                self.open.append((index, self._add_opener(line)))
                lines = self.lines[header[0] : index + 2]
                self.header = tuple(self.source.position(each.start)[0] for each in lines)
            elif self.adds and self._lacks_brace(index) and not (depth and self._is_continued(index)):
                depth = 0
                self._open_after(index)
        self.is_balanced &= len(self.open) <= 1

    def _close(self, index: int, place: int) -> None:
        opener, line = self.open[-1][0], self.lines[index]
        is_last = sum(each == opener for each, _ in self.open) == 1 and opener < index
        is_deeper = line.indent > self._indents[opener]
        if is_last and is_deeper and self._is_closed_after(opener, index):
            if _CLOSED_BY_ELSE.match(line.code) and self._begin_if(index):
                return
            if not self._is_known(line):  # else its `{` may be missing
                self.mistakes.append(mistakes.unmatched_closer(Span(self.source, place, place + 1), None))
            self._replace(place, place + 1, "")
            return
        self.open.pop()
        is_if = _IF.match(self.lines[opener].code) is not None and _HALF_ELSE.fullmatch(line.code) is not None
        after = self._line_after(index, line.indent)
        if is_if and not is_deeper and after is not None and after.closes and self._is_deeper_after(index):
            self._complete_else(index, opener, place, after)

    def _complete_else(self, index: int, opener: int, place: int, after: _Line) -> None:
        """Puts `else {` or `else if … {` after the `}` at a place. Spaces replace a body before another `else` that
        leaves no room for that."""
        line, room = self.lines[index], self.lines[index + 1].start
        is_chain = _CLOSED_BY_ELSE.match(after.code) is not None
        header = _ELSE_IF if is_chain else _ELSE
        fits = room - place > len(header)
        if after.indent != line.indent or not (fits or is_chain):
            return
        self.mistakes.append(mistakes.else_missing(Span(self.source, place, line.start + len(line.code))))
        if fits:
            self._replace(place + 1, room, header)
            self.conditions += [place + 1 + header.index("if")] if is_chain else []
            self.open.append((index, place))
        else:
            self._replace(place, after.start, "")
            self.open.append((opener, self.lines[opener].start))

    def _close_before(self, index: int) -> None:
        """Adds the `}` of each body that is not closed before a line that is not indented deeper than its header,
        but for that of the item."""
        line = self.lines[index]
        while len(self.open) > 1:
            opener, place = self.open[-1]
            indent = self._indents[opener]
            if line.indent > indent or (line.closes and line.indent == indent):
                return
            before = self.lines[index - 1]
            opened, noticed = Span(self.source, place, place + 1), Span(self.source, line.start, line.start + 1)
            end = before.start + len(before.code)
            free = next((each for each in range(end, line.start) if self.text[each] not in "}{"), None)
            if free is None:
                return
            if opened.text == "{":  # else it was added
                self.mistakes.append(mistakes.unclosed_bracket(opened, noticed))
            self.text = self.text[:free] + "}" + self.text[free + 1 :]
            self.closed[free] = self.source.position(end)[0]
            self._blank_comment(free + 1, before.end)
            self.open.pop()

    def _lacks_brace(self, index: int) -> bool:
        """Returns whether a line has no `{`, and the lines after it are indented as its body and end with a `}`."""
        line = self.lines[index]
        is_header = not line.closes and not line.code.endswith("{") and line.indent > 0
        if is_header and line.code.endswith(":"):
            return self._is_deeper_after(index)
        return is_header and self._is_deeper_after(index) and self._is_closed_after(index, index)

    def _is_continued(self, index: int) -> bool:
        """Returns whether a bracket of a line is closed in one of the deeper lines after it, before any brace."""
        following = self._following[index]
        end = len(self.text) if following is None else self.lines[following].start
        depth = 0
        for bracket in _BRACKET.finditer(self.text, self.lines[index].start, end):
            if bracket["brace"]:
                return False
            if bracket["bracket"]:
                depth += 1 if bracket["bracket"] in "([" else -1
                if depth == 0 and bracket.start() > self.lines[index].end:
                    return True
        return False

    def _open_after(self, index: int) -> None:
        line = self.lines[index]
        end = line.start + len(line.code)
        if line.code.endswith(":"):
            header = Span(self.source, line.start, end)
            is_foreign = _FOREIGN_LOOP.match(line.code) is not None and len(line.code) >= len(_LOOP)
            begin, text = (line.start, _LOOP) if is_foreign else (end - 1, "{")
            self.mistakes.append(mistakes.foreign_loop(header) if is_foreign else mistakes.colon_for_brace(header))
            self._replace(begin, end, text)
            self.open.append((index, end - 1))
            return
        after, room = self._line_after(index, line.indent), self.lines[index + 1].start - line.start
        is_half_if = after is not None and _CLOSED_BY_ELSE.match(after.code) is not None
        if not self._is_known(line) and after is not None and is_half_if and self._begin_if(self.lines.index(after)):
            self.open.append((index, end))
            return
        if self._is_known(line) and is_half_if and room > len(_IF_ZERO):
            self.replaced.append(self.source.position(line.start)[0])
            self._replace(line.start, self.lines[index + 1].start, _IF_ZERO)
            self.conditions.append(line.start)
        self.open.append((index, end))
        if not self._is_known(line):
            self.mistakes.append(mistakes.brace_missing(Span(self.source, line.start, line.start + len(line.code))))
            self.added.append(self._add_opener(line))

    def _begin_if(self, index: int) -> bool:
        """Puts `if 0{` before the deeper lines before the `} else` that begins a line; returns whether there is
        room."""
        closer, first = self.lines[index], index
        while first > 0 and self.lines[first - 1].indent > closer.indent:
            first -= 1
        before = self.lines[first - 1]
        start, end = before.start + len(before.code), self.lines[first].start
        place = end - len(_IF_ZERO)
        if first in (0, index) or place < start + self.text[start - 1].isalnum():
            return False
        self.mistakes.append(mistakes.if_missing(Span(self.source, closer.start, closer.start + len(closer.code))))
        if "\n" in self.text[place:end]:
            self._replace(start, place, "")  # else it may be in a comment
        self._replace(place, end, _IF_ZERO)
        self.conditions.append(place)
        return True

    def _half_header(self) -> range | None:
        """Returns the lines from one with a known mistake to the end of the header of an item, if they lack the `{` of
        the item: then the `}` of the item has none, or that of a statement in its body."""
        header = next((index for index, line in enumerate(self.lines) if _DEFINITION.match(line.code)), None)
        if header is None or self.lines[header].indent > 0:
            return None
        for index in range(header, len(self.lines)):
            line = self.lines[index]
            if line.closes and line.indent == 0:
                mistaken = next((each for each in range(header, index) if self._is_known(self.lines[each])), None)
                if mistaken is None or not self._is_extra(header, index):
                    return None
                return range(mistaken, self._end_of_parameters(mistaken, index) + 1)
            if index > header and line.indent == 0 and not line.code.startswith(("]", ")", "{")):
                return None
        return None

    def _end_of_parameters(self, index: int, closer: int) -> int:
        """Returns the last line of the parameters that go on after a line of a header, the end of which is cut."""
        while (
            index + 2 < closer
            and self.lines[index].code.endswith((",", "(", "["))
            and not _BODY.match(self.lines[index + 1].code)
        ):
            index += 1
        return index

    def _is_extra(self, header: int, closer: int) -> bool:
        """Returns whether the `}` that begins a line is one more than the `{` from a header on, the first of which is
        that of a statement."""
        text = self.text[self.lines[header].start : self.lines[closer].start]
        braces = [bracket for bracket in _BRACKET.finditer(text) if bracket["brace"]]
        if not braces:
            return True
        first = text.rfind("\n", 0, braces[0].start()) + 1
        count = sum(1 if brace["brace"] == "{" else -1 for brace in braces)
        return count == 0 and _STATEMENT.match(text, first) is not None

    def _is_known(self, line: _Line) -> bool:
        return self.source.position(line.start)[0] in self.mistaken_lines

    def _add_opener(self, line: _Line) -> int:
        place = line.start + len(line.code)
        self.text = self.text[:place] + "{" + self.text[place + 1 :]
        self._blank_comment(place + 1, line.end)
        return place

    def _blank_comment(self, start: int, end: int) -> None:
        if start < end:
            self._replace(start, end, "")

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + " " * (end - start - len(text)) + self.text[end:]

    def _is_deeper_after(self, index: int) -> bool:
        following = self.lines[index + 1] if index + 1 < len(self.lines) else None
        return following is not None and following.indent > self.lines[index].indent

    def _line_after(self, index: int, indent: int) -> _Line | None:
        """Returns the first line after a line that is not indented deeper than some spaces."""
        following: int | None = index + 1
        while following is not None and following < len(self.lines):
            if self.lines[following].indent <= indent:
                return self.lines[following]
            following = self._following[following]
        return None

    def _is_closed_after(self, opener: int, index: int) -> bool:
        """Returns whether the first line after a line that is not indented deeper than the line of an open brace begins
        with a `}` of the same indentation."""
        indent = self._indents[opener]
        after = self._line_after(index, indent)
        return after is not None and after.indent == indent and after.closes


@dataclass(frozen=True)
class RepairedBraces:
    """A text with the braces that its indentation shows, and the mistakes in its own.

    `added` are the places of `{` that are none of the text, after a line that may not be the header of a body, `closed`
    those of `}`, each with the line before it. `header` are the last lines of the header of an item to which a `{` was
    added, the mistake of which is known, and the line after them. `if 0{` stands in place of `replaced` lines, whose
    mistakes are known, too. `conditions` are the places of each `if` that is none of the text."""

    text: str
    mistakes: list[Diagnostic] = field(default_factory=list)
    added: list[int] = field(default_factory=list)
    closed: dict[int, int] = field(default_factory=dict)
    header: tuple[int, ...] = ()
    replaced: list[int] = field(default_factory=list)
    conditions: list[int] = field(default_factory=list)

    def mistakes_of(self, first: list[Diagnostic], again: list[Diagnostic]) -> list[Diagnostic]:
        """Returns the mistakes of a text: its own, and those with which it was read first and `again`, repaired."""
        added = {*self.added, *self.closed}
        lines = {self.closed[each.span.start] for each in again if each.span.start in self.closed}
        shown = [each for each in again if each.span.start not in added and each.span.line not in self.header[:-1]]
        shown_places = {each.span for each in (*self.mistakes, *shown)}
        lines.update(self.replaced)
        shown += [each for each in first if each.span.line in lines and each.span not in shown_places]
        if not any(each.span.line in self.header[-1:] for each in shown):
            shown += [each for each in first if each.span.line in self.header[:-1]]
        return self.mistakes + shown


def repair_braces(source: Source, text: str, mistaken_lines: frozenset[int]) -> RepairedBraces:
    """Returns a text with a space in place of each extra `}`, and with `else{`, `{` and `}` in place of spaces, line
    ends and comments where they are missing. `mistaken_lines` have known
    mistakes: they may lack a `{`."""
    if not (has_odd_brace(text) or _COLON_HEADER.search(text)):
        return RepairedBraces(text)
    lines = [
        _Line(line.start("code"), line.end(), len(line["indent"]), line["code"].partition("#")[0].rstrip())
        for line in _LINE.finditer(text)
    ]
    for adds in (True, False):
        braces = _Braces(source, text, lines, adds, mistaken_lines)
        braces.read()
        if braces.is_balanced:
            break
    return RepairedBraces(
        braces.text, braces.mistakes, braces.added, braces.closed, braces.header, braces.replaced, braces.conditions
    )


def has_odd_brace(text: str) -> bool:
    """Returns whether a text has a brace without the other one."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        if bracket["brace"]:
            depth += 1 if bracket["brace"] == "{" else -1
            if depth < 0:
                return True
    return depth != 0
