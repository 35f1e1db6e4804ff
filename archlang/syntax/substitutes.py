"""Completes half a line where the words after it would change what the lines around it mean: a misspelt `else`, an
`else` without `if` or without the `}` before it, a line that ends with `=` before a loop, and an `if` with bodies in
place of a value."""

import re
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.names import did_you_mean
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.braces import has_odd_brace
from archlang.syntax.outline import FOREIGN_ELSE_IF

_PIECE = re.compile(r'"[^"\r\n]*"|\#[^\r\n]*|(?P<brace>[{}])|(?P<space>[ \t])else(?=[ \t]*\{|[ \t]+if\b[^{}\r\n]*\{)')
# What stands before the `{` of an `if`.
_IF = re.compile(r"[ \t]*(?:else[ \t]+)?if\b[^{}]*")
# A word after a `}`, before a `{`, or before an `if` or the condition of one.
_AFTER_BRACE = re.compile(r"\s*+(?P<word>[A-Za-z]+)(?:[ \t]*+(?=\{)|(?P<chained>[ \t]+if\b[ \t]*+|[ \t]+)(?=[\w(]))")
_VALUE_BEFORE_LOOP = re.compile(
    r"""
    ^[ \t]*+ (?P<name> [A-Za-z_]\w*+ (?P<sign> [ \t]*+ =) (?P<rest> [ \t]*+ (?: \#[^\r\n]*+ )?+) )
    [\r\n] \s*+ (?: \#[^\r\n]*+ \s*+ )*+
    (?P<loop> (?:repeat|stack)\b (?!\s*=) | (?:scan|experts) \s+ [A-Za-z_]\w* \s+ (?:in|after)\b )
    """,
    re.MULTILINE | re.VERBOSE,
)
# An `if` with a body in place of a value.
_VALUE_IF = re.compile(
    r"^[ \t]*+(?:(?P<name>[A-Za-z_]\w*+)[ \t]*+(?:=(?!=)|<-)|return\b|emit\b)[ \t]*+(?P<word>if)\b[^{}#\r\n]*+\{",
    re.MULTILINE,
)
_BRACE = re.compile(r'"[^"\r\n]*"|\#[^\r\n]*|(?P<brace>[{}])')
_ELSE = re.compile(r"\s*+else\b(?:[ \t]+if\b[^{}#\r\n]*+)?[ \t]*+\{")
# What stands before a `{` and binds nothing.
_HEADER = re.compile(r"[ \t]*+(?P<code>(?P<word>\w+)(?:[^{}<=\r\n]|[<=]=|<(?!-))*?)[ \t]*")
_LOOP = re.compile(r"\b(?:repeat|stack|scan|experts|else)\b")
_ITEM = re.compile(r"(?:extern[ \t]+)?(?:block|model|recipe|table|task|optimizer)\b")
_IF_ZERO = "if 0"
_WORD = re.compile(r"\w+")


@dataclass
class Substitutes:
    """A text of the same length as the text of a source, with substitutes, the mistakes that these stand for, and the
    places of the values that are none of the source. `is_balanced` says that each brace has its other one."""

    source: Source
    text: str
    is_balanced: bool
    mistakes: list[Diagnostic] = field(default_factory=list)
    values: set[int] = field(default_factory=set)

    @staticmethod
    def of(source: Source, text: str, end: int | None) -> "Substitutes":
        """Completes the half lines of a text; the braces after `end` do not count."""
        substitutes = Substitutes(source, text, not has_odd_brace(text[:end]))
        substitutes._complete_values()
        substitutes._replace_conditional_values()
        substitutes._complete_else()
        return substitutes

    def _complete_values(self) -> None:
        for line in _VALUE_BEFORE_LOOP.finditer(self.text):
            sign, loop = Span(self.source, line.end("sign") - 1, line.end("sign")), line.start("loop")
            following = _WORD.match(self.text, loop)
            assert following is not None, "a loop begins with a word"
            self.mistakes.append(mistakes.value_missing(sign, Span(self.source, *following.span())))
            start = line.start("sign")
            end = line.end("rest") if line.end("rest") - start > 1 else line.end("rest") + 1
            self._replace(start, end, "=0")
            self.values.add(start + 1)

    def _replace_conditional_values(self) -> None:
        start = 0
        while (line := _VALUE_IF.search(self.text, start)) is not None:
            end = start = line.end()
            closer = self._closer(line.end() - 1)
            while closer is not None:
                end = closer + 1
                otherwise = _ELSE.match(self.text, end)
                closer = None if otherwise is None else self._closer(otherwise.end() - 1)
            if end > line.end():
                word = Span(self.source, *line.span("word"))
                self.mistakes.append(mistakes.if_as_value(word, line["name"]))
                self._replace(word.start, end, "0")
                self.values.add(word.start)

    def _closer(self, opener: int) -> int | None:
        """Returns the place of the `}` of the `{` at a place, if there is one."""
        depth = 0
        for piece in _BRACE.finditer(self.text, opener):
            depth += {"{": 1, "}": -1}.get(piece["brace"] or "", 0)
            if depth == 0:
                return piece.start()
        return None

    def _complete_else(self) -> None:
        headers: list[tuple[int, int]] = []  # of the open braces: where the line or the text after a brace begins
        before = 0  # the end of the last brace
        closed: int | None = None  # the end of the last `}` and the comments after it, if nothing else follows
        dropped = -1  # the place of a `{` after an `else` that follows the body of an item
        for piece in list(_PIECE.finditer(self.text)):
            if piece.start() == dropped:
                continue
            is_next = closed is not None and not self.text[closed : piece.start()].strip()
            is_comment = piece[0].startswith("#")
            closed = piece.end() if piece["brace"] == "}" or (is_next and is_comment) else None
            if piece["space"] and headers and not is_next and self._is_if(headers[-1]):
                headers.pop()
                self._replace(piece.start(), piece.end("space"), "}")
                word = Span(self.source, piece.end("space"), piece.end())
                self.mistakes.append(mistakes.closer_missing_before_else(word))
            elif piece["brace"] == "{":
                headers.append((max(before, self._line_start(piece.start())), piece.start()))
            before = piece.end() if piece["brace"] else before
            if piece["brace"] == "}" and headers:
                header = headers.pop()
                half = _AFTER_BRACE.match(self.text, piece.end())
                if half is not None and self._is_if(header):
                    before = self._complete_half(piece.start(), half)
                elif half is not None and half["word"] == "else" and self.is_balanced:
                    if _ITEM.match(self.text, header[0]):
                        dropped = self._drop_else(piece.start(), half)
                        headers.append(header)
                    else:
                        self._complete_if(header)

    def _complete_half(self, closer: int, half: re.Match[str]) -> int:
        """Puts `else` or `else if` in place of a word after a `}`, which moves to the left if there is no room. Returns
        the end of the `}`."""
        word = Span(self.source, *half.span("word"))
        chained = half["chained"]
        if word.text in FOREIGN_ELSE_IF and chained is not None and chained.isspace():
            mistake = mistakes.foreign_else_if(word)
        elif _is_near_else(word.text) and (chained is None or not chained.isspace()):
            mistake = mistakes.misspelt_else(word)
        else:
            return closer + 1
        keywords = "else" if chained is None else "else if "
        start = half.end() - len(keywords) - 1
        if start < closer and self.text[start:closer].strip(" \t"):
            return closer + 1
        self.mistakes.append(mistake)
        self._replace(min(start, closer), half.end(), "}" + " " * max(0, start - closer) + keywords)
        return min(start, closer) + 1

    def _drop_else(self, closer: int, half: re.Match[str]) -> int:
        """Puts spaces in place of `} else … {`. Returns the place of the `{`."""
        opener = self.text.find("{", half.end())
        self.mistakes.append(mistakes.else_without_if(Span(self.source, *half.span("word"))))
        self._replace(closer, opener + 1, "")
        return opener

    def _complete_if(self, header: tuple[int, int]) -> None:
        """Puts an `if` in place of the header of a body before an `else`, unless that is the header of a loop."""
        start, opener = header
        written = _HEADER.fullmatch(self.text, start, opener)
        place = opener - len(_IF_ZERO)
        if written is not None and place >= start and not _LOOP.search(written["code"]):
            code = Span(self.source, *written.span("code"))
            self.mistakes.append(mistakes.if_missing_before(code, Span(self.source, *written.span("word"))))
            self._replace(start, place, "")
            self._replace(place, opener, _IF_ZERO)
            self.values.add(place)

    def _is_if(self, header: tuple[int, int]) -> bool:
        return _IF.fullmatch(self.text, *header) is not None

    def _line_start(self, place: int) -> int:
        return self.source.line_bounds(self.source.position(place)[0])[0]

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + " " * (end - start - len(text)) + self.text[end:]


def _is_near_else(word: str) -> bool:
    return word != "else" and ("else".startswith(word) or did_you_mean(word, ("else",)) is not None)
