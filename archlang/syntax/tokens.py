"""The tokens of a text, by the terminals of the grammar: the parser, recovery and the editor take them from here."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from archlang.errors import Source
from archlang.syntax.grammar import grammar, kinds, spellings

if TYPE_CHECKING:
    from lark import Token

# Words of the language, by where they stand.
ITEM_WORDS = ("use", "block", "model", "task", "extern", "recipe", "table")
CHOICE_WORDS = ("task", "model", "train")
RECIPE_WORDS = (*CHOICE_WORDS, "test", "vary", "search", "claim")
TABLE_WORDS = ("row", "column", "columns")
PART_WORDS = (*RECIPE_WORDS, *TABLE_WORDS)
# `where` is also a clause of signatures.
LINE_WORDS = (*PART_WORDS, "where")
CLAUSE_WORDS = (
    *("where", "reads", "depends", "random", "stops", "sizes", "costs", "maps", "records", "cuts", "gives", "pure"),
    *("acts", "demands", "causal", "with", "python"),
)
STATEMENT_WORDS = ("let", "loss", "return", "emit", "if", "repeat", "stack")
# Words that cannot be names.
RESERVED = ("let", "return", "emit", "if", "repeat", "stack", "else", "in", "when", "and", "or", "not", "true", "false")
BINDERS = ("=", "<-")
# Terminals with which a value ends.
ENDS_OF_VALUES = ("NAME", "DOTTED", "NUMBER", "STRING", "RPAR", "RSQB", "TRUE", "FALSE")
OPENERS = {"(": ")", "[": "]", "{": "}"}
CLOSERS = {")": "(", "]": "[", "}": "{"}

# Names, numbers, strings, signs and comments of a file. The longest shipped file has 2_600.
MOST_WORDS = 30_000
# Characters of a name, a number or a string.
LONGEST_WORD = 1_000

# What no terminal matches: a number with letters, a string without its end, a word with other letters, a character.
_UNKNOWN = r'[0-9][\w.]*|"[^"\r\n]*|\w+|(?s:.)'


@cache
def pattern() -> re.Pattern[str]:
    """Returns the pattern of one piece of a text, whose groups are `BLANK`, `COMMENT`, `STRING`, `NUMBER`, `WORD`,
    `SIGN` and `UNKNOWN`. It matches everywhere."""
    of = {item.name: item.pattern.value for item in grammar().terminals}
    signs = sorted((text for text in spellings().values() if not text.isalpha()), key=len, reverse=True)
    # Whether a word is a keyword depends on its place.
    word = rf"{of['DOTTED']}|{of['NAME'].partition(')')[2].partition(')')[2]}"
    groups = {**{name: of[name] for name in ("BLANK", "COMMENT", "STRING", "NUMBER")}, "WORD": word}
    groups |= {"SIGN": "|".join(map(re.escape, signs)), "UNKNOWN": _UNKNOWN}
    return re.compile("|".join(f"(?P<{name}>{regexp})" for name, regexp in groups.items()))


def pieces(text: str, start: int = 0, end: int | None = None) -> Iterator[re.Match[str]]:
    """Yields the words, signs, strings, numbers and comments of a text."""
    for piece in pattern().finditer(text, start, len(text) if end is None else end):
        if piece.lastgroup != "BLANK":
            yield piece


def tokens(source: Source, start: int = 0, end: int | None = None) -> tuple[list[Token], list[Token], Token | None]:
    """Returns the tokens and the comments of a part of a text, and the first that is one too many, or too long. The
    terminal of a word is that of its keyword, if it has one."""
    from lark import Token

    of_text = kinds()
    code: list[Token] = []
    comments: list[Token] = []
    text, is_marked = source.text, source.text.startswith("\ufeff")
    for piece in pieces(text, start, end):
        place, kind = piece.start(), piece.lastgroup or ""
        line, column = source.position(place)
        word = piece[0]
        if kind in ("SIGN", "WORD"):
            kind = of_text.get(word) or ("DOTTED" if "." in word else "NAME")
        if kind == "STRING" and "\0" in word:  # it would end a text of C
            kind = "UNKNOWN"
        token = Token(kind, word, place, line, column - (is_marked and line == 1), None, None, piece.end())
        is_long = len(word.strip('"')) > LONGEST_WORD and kind != "COMMENT"
        if is_long or len(code) + len(comments) == MOST_WORDS:
            return code, comments, token
        (comments if kind == "COMMENT" else code).append(token)
    return code, comments, None


def closers(code: Sequence[Token], kinds: Collection[str] = ("LPAR", "LSQB", "LBRACE")) -> dict[int, int]:
    """Returns the index of the token that closes each opening bracket of some kinds. The bracket inside may lack its
    own, as does one before a line that binds a name and is not deeper."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    columns: dict[int, int] = {}  # of each line
    for index, token in enumerate(code):
        if (line := token.line or 0) not in columns:
            column = columns[line] = token.column or 0
            if "LPAR" in kinds and code[index + 1 : index + 2] in ([":"], ["="], ["<-"]):
                opened = [each for each in opened if code[each] == "{" or columns[code[each].line or 0] < column]
        if token.type in kinds:
            opened.append(index)
        for count in (1, 2) if token.type in _OPENERS_OF else ():
            if opened[-count:] and code[opened[-count:][0]].type == _OPENERS_OF[token.type]:
                pairs[opened[-count:][0]] = index
                del opened[-count:]
                break
    return pairs


def unclosed(code: Sequence[Token]) -> list[Token]:
    """Returns the parentheses and square brackets that nothing closes."""
    pairs = closers(code, ("LPAR", "LSQB"))
    return [token for index, token in enumerate(code) if token in ("(", "[") and index not in pairs]


_OPENERS_OF = {"RPAR": "LPAR", "RSQB": "LSQB", "RBRACE": "LBRACE"}
