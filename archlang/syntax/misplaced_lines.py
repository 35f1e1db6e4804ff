"""Diagnostics of lines of a recipe or a table that stand elsewhere."""

import re
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Edit
from archlang.diagnostics.edits import insertion
from archlang.source import Span
from archlang.syntax.outline import MODEL_HEAD, RECIPE_WORDS, TABLE_WORDS

_HEADER = re.compile(r"(recipe|table)[ \t]+([A-Za-z_]\w*)")
# The end of an item whose `}` stands on a line of its own, and the comments after it.
_END = re.compile(r"^\}[ \t]*(?:#[^\r\n]*)?(?:\s*#[^\r\n]*)*\s*\Z", re.MULTILINE)
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
# What no misplaced line begins with: nothing, a comment, a brace, or the word of an item.
_ENDS = re.compile(rf"\s*(?:$|#|\}}|(?:use|block|extern|recipe|table)\s|{MODEL_HEAD.pattern})")


def misplaced_line(word: Span, around: str, item_before: int | None) -> Diagnostic | None:
    """Returns the diagnostic of a line that begins with `word`, which belongs to a recipe or a table. `around` is the
    word of the item in which the line stands, empty outside of items; `item_before` is the place of the last item that
    begins before the line. Returns None if the line may stand there."""
    belongs = {**dict.fromkeys(RECIPE_WORDS, "recipe"), **dict.fromkeys(TABLE_WORDS, "table")}.get(word.text)
    if belongs is None or belongs == around:
        return None
    message = f"a line `{word.text}` stands outside of a {belongs}"
    if around:
        message = f"a line `{word.text}` belongs to a {belongs}, not to a {around}"
    remedy = f"move it between the braces of a {belongs}: `{belongs} name {{ … }}`"
    diagnostic = Diagnostic("E0101", message, word, f"a line of a {belongs}", remedy=remedy)
    header = None if item_before is None or around else _HEADER.match(word.source.text, item_before)
    end = _END.search(word.source.text, item_before or 0, _line_start(word))
    if header is None or end is None or header[1] != belongs:
        return diagnostic
    remedy = f"move it into the {belongs} `{header[2]}`"
    lines = _lines(word)
    indented = "".join(f"    {line.strip()}\n" for line in lines.text.splitlines())
    return Diagnostic("E0101", message, word, f"a line of a {belongs}", remedy=remedy).with_edits(
        insertion(word.source, end.start(), indented), Edit(lines, "")
    )


def without_header(line: Diagnostic) -> Diagnostic:
    """Returns the diagnostic of the first of some lines outside of items that end with a `}`."""
    belongs = line.label.split()[-1]
    remedy = f"write `{belongs} name {{` before these lines"
    return replace(line, remedy=remedy, edits=())


def _line_start(word: Span) -> int:
    return word.source.line_bounds(word.line)[0]


def _lines(word: Span) -> Span:
    """Returns the lines from that of a word to the next empty line, comment, brace or item."""
    text, start = word.source.text, _line_start(word)
    line = _LINE.match(text, start)
    end = start
    while line is not None and end < len(text) and (end == start or not _ENDS.match(line[0])):
        end = line.end()
        line = _LINE.match(text, end)
    return Span(word.source, start, end)
