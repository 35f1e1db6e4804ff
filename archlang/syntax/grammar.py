"""The parser's tables, made from `arch.lark`."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lark import Lark

_GRAMMAR = Path(__file__).with_name("arch.lark")


@cache
def grammar() -> Lark:
    from lark import Lark

    return Lark(
        _GRAMMAR.read_text(encoding="utf-8"),
        parser="lalr",
        start=["start", "expression"],
        keep_all_tokens=True,
        maybe_placeholders=True,
    )
