"""How many words a text has and how long they are, known before it is parsed."""

from __future__ import annotations

import re
from itertools import islice

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax import mistakes

# Names, numbers, texts in quotes, signs and comments. The longest shipped file has 2_600.
MOST_WORDS = 30_000
# Characters of a name, a number or a text in quotes.
LONGEST_WORD = 1_000

_WORD = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|\w+|[^\s\w]')
# A long word; what stands in a comment or in a short text in quotes is skipped.
_LONG = re.compile(rf'(#[^\r\n]*)|("[^"\r\n]{{{LONGEST_WORD + 1},}}"?|[\w.]{{{LONGEST_WORD + 1},}})|"[^"\r\n]*"')


def count_words(text: str) -> int:
    """The words of a text, counted up to one more than a program may have."""
    return sum(1 for _ in islice(_WORD.finditer(text), MOST_WORDS + 1))


def find_excess(source: Source) -> Diagnostic | None:
    """The first word too many, or the first that is too long."""
    last = next(islice(_WORD.finditer(source.text), MOST_WORDS, None), None)
    if last is not None:
        return mistakes.too_many_words(Span(source, *last.span()), MOST_WORDS)
    for word in _LONG.finditer(source.text):
        if word[2]:
            return mistakes.word_too_long(Span(source, *word.span()), LONGEST_WORD)
    return None
