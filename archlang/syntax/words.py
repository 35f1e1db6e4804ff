"""Limits on the number and the length of tokens, checked before parsing."""

import re
from itertools import islice

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes

# Names, numbers, strings, signs and comments of a file. The longest shipped file has 2_600.
MOST_WORDS = 30_000
# Characters of a name, a number or a string.
LONGEST_WORD = 1_000

_WORD = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|\w+|[^\s\w]')
# A long token; comments and short strings are matched first, to skip their content.
_LONG = re.compile(rf'(#[^\r\n]*)|("[^"\r\n]{{{LONGEST_WORD + 1},}}"?|[\w.]{{{LONGEST_WORD + 1},}})|"[^"\r\n]*"')


def count_words(text: str) -> int:
    """Counts the tokens of a text, up to `MOST_WORDS + 1`."""
    return sum(1 for _ in islice(_WORD.finditer(text), MOST_WORDS + 1))


def find_excess(source: Source) -> Diagnostic | None:
    """Returns a diagnostic for the first excess or too long token, or None."""
    last = next(islice(_WORD.finditer(source.text), MOST_WORDS, None), None)
    if last is not None:
        return mistakes.too_many_words(Span(source, *last.span()), MOST_WORDS)
    if max(map(len, source.text.split("\n"))) <= LONGEST_WORD:  # no token reaches beyond its line
        return None
    for word in _LONG.finditer(source.text):
        if word[2]:
            return mistakes.word_too_long(Span(source, *word.span()), LONGEST_WORD)
    return None
