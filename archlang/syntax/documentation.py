"""The documentation of items: the `##` lines above them, and the sentences of these."""

import re
from collections.abc import Sequence
from itertools import takewhile

from archlang.errors.source import Span

_SENTENCE = re.compile(r".*?[.?!](?= [A-Z`]|$)")


def documentation_above(item: Span) -> tuple[str, ...]:
    """Returns the `##` lines directly above an item, without the marks. An empty line may follow if there are no other
    comments among them."""
    source, number = item.source, item.line - 1
    lines: list[str] = []
    has_gap = number > 0 and not source.line(number).strip()
    while has_gap and number > 1 and not source.line(number).strip():
        number -= 1
    while number > 0 and (line := source.line(number).strip(" \t\f\ufeff")).startswith("#"):
        lines.insert(0, line)
        number -= 1
    documentation = [line for line in lines if line.startswith("##")]
    is_first = not source.line(item.line)[: item.column - 1].strip(" \t\f\ufeff")
    if not is_first or (has_gap and len(documentation) < len(lines)):
        return ()
    return tuple(line[2:].removeprefix(" ") for line in documentation)


def sentences(text: str) -> list[str]:
    """Returns the sentences of a text."""
    return [sentence[0].strip() for sentence in _SENTENCE.finditer(text)]


def first_sentence(documentation: Sequence[str]) -> str:
    """Returns the first sentence of a documentation, which may take several lines; empty if there is none."""
    paragraph = " ".join(takewhile(str.strip, documentation))
    sentence = _SENTENCE.match(paragraph)
    return paragraph if sentence is None else sentence[0]
