"""Which words of a program the parser reads as keywords, to compare with what colours them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lark import Token
from lark.parsers.lalr_parser_state import ParserState

import archlang
from archlang.errors import Source
from archlang.syntax.grammar import spellings
from archlang.syntax.parser import parse

ROOT = Path(archlang.__file__).parent


def shipped_files() -> tuple[Path, ...]:
    """Returns every program of the package: blocks, models, recipes, tasks and optimizers."""
    return tuple(
        sorted({*ROOT.rglob("*.arch"), *(ROOT / "blocks").rglob("*.arch"), *(ROOT / "recipes").rglob("*.arch")})
    )


def words(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the start of each word of a correct program, the word, and whether the parser reads it as a keyword."""
    keywords = spellings()  # first, because lark parses the grammar too
    tokens: list[Token] = []
    feed = ParserState.feed_token

    def record(
        state: ParserState[Any], token: Token, is_end: bool = False
    ) -> Any:  # Any: the value of the parser's callbacks
        result = feed(state, token, is_end)
        tokens.append(token)
        return result

    with patch.object(ParserState, "feed_token", record):
        parse(Source("test.arch", text))
    for token in tokens:
        if re.fullmatch(r"[A-Za-z_][\w.]*", token):
            yield token.start_pos or 0, str(token), token.type in keywords
