"""What an expression may name at a place: values, statics, sizes or blocks, by the tokens before it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Token

Pending = Sequence["Token | str"]


class Names(Enum):
    """The names that can stand at a place."""

    NONE = "none"
    VALUES = "values, and what computes them"
    STATICS = "statics and sizes"
    DIMENSIONS = "sizes, lengths included"
    COSTS = "sizes, lengths included, and the number of positions"
    STAGES = "blocks and their instances"
    BLOCKS = "blocks"
    HALTING = "blocks that decide when a loop halts"
    DRAWING = "blocks that draw a number of steps"


_STATIC = ("WHERE", "IF", "WHEN", "REPEAT", "STACK", "TRUNCATED", "INTO", "GIVES", "SIZES")
_VALUE = ("RETURN", "EMIT", "UPDATE", "LOSS", "LBRACE")
_NAMES = ("NAME", "DOTTED")


def names_at(pending: Pending) -> Names:
    """Returns what an expression after some tokens may name; `pending` are those of the rules that are not complete."""
    skipped = 0  # `when` of conditionals whose `else` follows
    for index in range(len(pending) - 1, -1, -1):
        terminal, before = _terminal(pending, index), _terminal(pending, index - 1)
        if terminal == "ELSE":
            skipped += 1
        elif terminal == "WHEN" and skipped:
            skipped -= 1
        elif terminal == "LPAR" and before in ("name", "statics"):
            return Names.VALUES
        elif terminal == "LSQB" and before in ("AFTER", "name", *_NAMES):
            is_type = before in _NAMES and _terminal(pending, index - 2) in ("COLON", "ARROW", "ELSE")
            return Names.DIMENSIONS if is_type else Names.STATICS
        elif terminal == "IN" and _is_loop(pending, index):
            return Names.VALUES
        elif terminal in _SINGLE:
            return _SINGLE[terminal]
        elif terminal == "BY":
            return _after_by(pending, index)
    return Names.NONE


def enclosing(pending: Pending, terminals: Sequence[str]) -> str:
    """Returns the innermost of some terminals that the rules which are not complete contain, empty if there is none."""
    for index in range(len(pending) - 1, -1, -1):
        if (terminal := _terminal(pending, index)) in terminals:
            return terminal
    return ""


def _is_loop(pending: Pending, index: int) -> bool:
    """Whether the `in` at an index is that of a loop: a variable, and what is before it, stand between."""
    return any(_terminal(pending, index - distance) in ("SCAN", "EXPERTS") for distance in (2, 3))


def _after_by(pending: Pending, index: int) -> Names:
    if _terminal(pending, index - 1) == "DRAWN":
        return Names.DRAWING
    return Names.HALTING if any(_terminal(pending, index - at) == "HALTING" for at in (2, 4)) else Names.VALUES


def _terminal(pending: Pending, index: int) -> str:
    symbol = pending[index] if index >= 0 else ""
    return getattr(symbol, "type", str(symbol))


_SINGLE = {
    **dict.fromkeys(_STATIC, Names.STATICS),
    **dict.fromkeys(_VALUE, Names.VALUES),
    "PIPE": Names.STAGES,
    "LET": Names.BLOCKS,
    "COSTS": Names.COSTS,
    "MAPS": Names.STATICS,
    "RECORDS": Names.STATICS,
    "READS": Names.STATICS,
}
