"""Completes half a line where the words after it would change what the lines around it mean: a misspelt `else`, and a
line that ends with `=` before a loop."""

import re
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.names import did_you_mean
from archlang.source import Source, Span
from archlang.syntax import mistakes
from archlang.syntax.outline import FOREIGN_ELSE_IF

_BRACE = re.compile(r'"[^"\r\n]*"|\#[^\r\n]*|(?P<brace>[{}])')
# A line up to a `{`, if that begins the body of an `if`.
_IF = re.compile(r"(?:[^\r\n]*[{}])?[ \t]*(?:else[ \t]+)?if\b[^{}]*")
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
_WORD = re.compile(r"\w+")


@dataclass
class Substitutes:
    """A text of the same length as the text of a source, with substitutes, the mistakes that these stand for, and the
    places of the values that are none of the source."""

    source: Source
    text: str
    mistakes: list[Diagnostic] = field(default_factory=list)
    values: set[int] = field(default_factory=set)

    @staticmethod
    def of(source: Source, text: str) -> "Substitutes":
        substitutes = Substitutes(source, text)
        substitutes._complete_values()
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

    def _complete_else(self) -> None:
        openers: list[int] = []
        for brace in list(_BRACE.finditer(self.text)):
            if brace["brace"] == "{":
                openers.append(brace.start())
            elif brace["brace"] and openers and self._is_if(openers.pop()):
                half = _AFTER_BRACE.match(self.text, brace.end())
                if half is not None:
                    self._complete_half(brace.start(), half)

    def _complete_half(self, closer: int, half: re.Match[str]) -> None:
        """Puts `else` or `else if` in place of a word after a `}`, which moves to the left if there is no room."""
        word = Span(self.source, *half.span("word"))
        chained = half["chained"]
        if word.text in FOREIGN_ELSE_IF and chained is not None and chained.isspace():
            mistake = mistakes.foreign_else_if(word)
        elif _is_near_else(word.text) and (chained is None or not chained.isspace()):
            mistake = mistakes.misspelt_else(word)
        else:
            return
        keywords = "else" if chained is None else "else if "
        start = half.end() - len(keywords) - 1
        if start >= closer or self.text[start:closer].strip(" \t") == "":
            self.mistakes.append(mistake)
            self._replace(min(start, closer), half.end(), "}" + " " * max(0, start - closer) + keywords)

    def _is_if(self, opener: int) -> bool:
        return _IF.fullmatch(self.text, self._line_start(opener), opener) is not None

    def _line_start(self, place: int) -> int:
        return self.source.line_bounds(self.source.position(place)[0])[0]

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + " " * (end - start - len(text)) + self.text[end:]


def _is_near_else(word: str) -> bool:
    return word != "else" and ("else".startswith(word) or did_you_mean(word, ("else",)) is not None)
