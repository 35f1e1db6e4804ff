"""Lays out tokens: spaces between them, and line ends where they do not fit on one line."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from archlang.syntax.tokens import CLAUSE_WORDS, CLOSERS, ITEM_WORDS, OPENERS, PART_WORDS, RESERVED

if TYPE_CHECKING:
    from lark import Token

WIDTH = 120
STEP = 4

_WORDS_BEFORE_VALUES = (*RESERVED, "by", "truncated", "into", "where", "at", "of", "claims", "median")
_SIGNS = ("=", "<-", "->", "|>", "==", "!=", "<", "<=", ">", ">=", "..", "±", "+-", *"+-*/%,([{:")
_WORDS_BEFORE_NAMES = (
    *("on", "reads", "sizes", "costs", "maps", "records", "acts", "gives", "demands", "with", "python", "table"),
    "recipe",
)
# A line that is too long ends before each of the first of these that it has outside of brackets, and after commas.
_LEVELS = (
    (*CLAUSE_WORDS, "at", "from", "best", "claims"), (",",), ("|>",), ("when", "else"), ("or",), ("and",), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip


def spaced(code: Sequence[Token]) -> str:
    """Returns tokens on one line, without the last comma of a list."""
    text = ""
    for index, token in enumerate(map(str, code)):
        if token != "," or code[index + 1 : index + 2] not in ([")"], ["]"]):
            text += " " * (index > 0 and _has_space_before(code, index)) + token
    return text


def _has_space_before(code: Sequence[Token], index: int) -> bool:
    has_space = code[index - 1].end_pos != code[index].start_pos
    before, token = str(code[index - 1]), str(code[index])  # tokens take long to compare
    if token in (",", ")", "]", ":", "..", "...") or before in ("(", "[", "..") or (before == "{" and token == "}"):
        return False
    if before == "-" and _is_prefix_minus(code, index - 1):
        return token == "-" or (token == "from" and has_space)
    if token in ("(", "["):
        is_value = before in RESERVED or (before in _WORDS_BEFORE_VALUES and has_space)
        return is_value or not (before[-1].isalnum() or before[-1] in "_)]")
    return True


def _is_prefix_minus(code: Sequence[Token], index: int) -> bool:
    before = code[index - 1] if index else None
    is_beside = index + 1 < len(code) and code[index].end_pos == code[index + 1].start_pos
    return before in (*_SIGNS, *RESERVED) or ((before is None or before in _WORDS_BEFORE_VALUES) and is_beside)


def laid(code: Sequence[Token], indent: int, column: int) -> str:
    """Returns tokens that begin at a column on as many lines as they need; the others are deeper than an indent."""
    text = spaced(code)
    if column + len(text) <= WIDTH:
        return text
    depths = bracket_depths(code)
    is_header = code[0] == "extern" or (code[0] in ITEM_WORDS and "->" in code)
    for level in _LEVELS[:1] if is_header else _LEVELS:
        places = [place for place in range(1, len(code)) if depths[place] == 0 and _is_break(code, place, level)]
        if places:
            parts = [code[start:end] for start, end in pairwise((0, *places, len(code)))]
            return _on_lines(parts, indent + STEP, indent, column, "," in level or code[0] in PART_WORDS)
    end = code.index("->") if "->" in code else len(code) - 1
    is_open = [token in ("(", "[") and depth == 0 for token, depth in zip(code, depths, strict=True)]
    openers = [place for place in range(end) if is_open[place] and code[place + 1] not in (")", "]")]
    if not openers:
        return text
    return _with_list(code, indent, column, openers, is_header)


def _with_list(code: Sequence[Token], indent: int, column: int, openers: Sequence[int], is_header: bool) -> str:
    """Returns tokens on lines of which some are those of the last list, unless the lists before it need them."""
    depths = bracket_depths(code)
    opener = openers[-1] if column + len(spaced(code[: openers[-1] + 1])) <= WIDTH else openers[0]
    closer = next(place for place in range(opener + 1, len(code)) if depths[place] == 0)
    listed, rest = without_comma(code[opener + 1 : closer]), code[closer:]
    commas = [place + 1 for place, depth in enumerate(bracket_depths(listed)) if listed[place] == "," and depth == 0]
    inside = [listed[start:end] for start, end in pairwise((0, *commas, len(listed)))]
    text = spaced(code[: opener + 1]) + "\n" + " " * (indent + STEP)
    if is_header and code[opener] == "[" and indent + STEP + len(spaced(code[opener + 1 :])) > WIDTH:
        lines = [f"{laid(without_comma(part), indent + STEP, indent + STEP)}," for part in inside]
        text += f"\n{' ' * (indent + STEP)}".join(lines) + "\n" + " " * indent
        return text + laid(rest, indent, indent)
    text += _on_lines(inside, indent + STEP, indent + STEP, indent + STEP, True, len(spaced(rest)))
    return text + laid(rest, indent, len(text) - text.rindex("\n") - 1)


def without_comma(part: Sequence[Token]) -> Sequence[Token]:
    return part[:-1] if part and part[-1] == "," else part


def _on_lines(
    parts: Sequence[Sequence[Token]], indent: int, first: int, column: int, is_filled: bool, rest: int = 0
) -> str:
    """Returns parts on lines of their own, or on lines that end where the next has no room. They begin at a column of a
    line with the indent `first`; after them stand as many characters as `rest` says."""
    text = ""
    for number, part in enumerate(parts):
        room = column + 1 + len(spaced(part)) + (rest if number == len(parts) - 1 else 0)
        if number == 0 or (is_filled and room <= WIDTH):
            text += " " * (number > 0)
            column += number > 0
        else:
            text += "\n" + " " * indent
            column = indent
        written = laid(part, indent if "\n" in text else first, column)
        text += written
        column = column + len(written) if "\n" not in written else len(written) - written.rindex("\n") - 1
    return text


def bracket_depths(code: Sequence[Token]) -> list[int]:
    """Returns the number of brackets around each token."""
    depths, depth = [], 0
    for token in code:
        depth = max(0, depth - (token in CLOSERS))
        depths.append(depth)
        depth += token in OPENERS
    return depths


def _is_break(code: Sequence[Token], place: int, level: Sequence[str]) -> bool:
    before, token = code[place - 1], code[place]
    if level is _LEVELS[0]:
        is_line = code[0] in (*ITEM_WORDS, "extern", *PART_WORDS, "]")
        ends = before[-1].isalnum() or before[-1] in '_)]"-'
        is_part = not ends or before in _WORDS_BEFORE_VALUES or before in _WORDS_BEFORE_NAMES
        return token in level and is_line and not is_part and (token != "causal" or "task" in (code[0], code[1]))
    if "," in level:
        return before == "," and token not in CLOSERS
    return token in level and before != "}" and not (token == "-" and _is_prefix_minus(code, place))
