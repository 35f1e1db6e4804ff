"""What the grammar would accept at a place, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ITEM = "an item (`use`, `block`, `model`, `extern`, `recipe` or `table`)"

# Terminals that a reader knows under one name: they are meant as a whole where all of the first ones are accepted, and
# then the others need no mention either.
_GROUPS: tuple[tuple[str, frozenset[str], frozenset[str]], ...] = (
    (
        "a value",
        frozenset(("NUMBER", "STRING", "NAME")),
        frozenset(("NUMBER", "STRING", "NAME", "DOTTED", "TRUE", "FALSE", "NOT", "MINUS", "LSQB", "LPAR", "SCAN")),
    ),
    (
        "a statement",
        frozenset(("LET", "RETURN")),
        frozenset(("LET", "RETURN", "EMIT", "IF", "REPEAT", "STACK", "SCAN", "NAME")),
    ),
    (ITEM, frozenset(("USE", "EXTERN")), frozenset(("USE", "BLOCK", "MODEL", "EXTERN", "RECIPE", "TABLE", "$END"))),
    (
        "a part of a recipe (`task`, `model`, `train`, `test`, `vary`, `search` or `claim`)",
        frozenset(("VARY", "CLAIM")),
        frozenset(("TASK", "MODEL", "TRAIN", "TEST", "VARY", "SEARCH", "CLAIM")),
    ),
    ("a part of a table (`row` or `column`)", frozenset(("ROW", "COLUMN")), frozenset(("ROW", "COLUMN"))),
    ("a name", frozenset(("NAME",)), frozenset(("NAME", "DOTTED"))),
    ("a number", frozenset(("NUMBER",)), frozenset()),
    ("a text in quotes", frozenset(("STRING",)), frozenset()),
)
_OPERATORS = frozenset(("|>", "when", "or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "..", "±", "+-", *"+-*/%"))


@dataclass(frozen=True)
class Expected:
    """`phrases` say it; `words` are the keywords among it; `operators`: an expression could go on."""

    phrases: tuple[str, ...]
    words: tuple[str, ...] = ()
    operators: bool = False

    def __str__(self) -> str:
        *first, last = self.phrases
        return f"{', '.join(first)} or {last}" if first else last


def expected(terminals: Iterable[str], spellings: Mapping[str, str]) -> Expected:
    """`spellings` has what stands in a program for each terminal that is always the same."""
    left = set(terminals)
    words = tuple(sorted(spellings[name] for name in left if spellings.get(name, "").isalpha()))
    phrases: list[str] = []
    for phrase, signs, group in _GROUPS:
        if signs <= left:
            phrases.append(phrase)
            left -= signs | group
    texts = {spellings[name] for name in left if name in spellings}
    operators = bool(texts & _OPERATORS)
    # Where an expression could go on, what ends it is the likelier thing to be missing.
    if operators and (phrases or texts - _OPERATORS - set("([")):
        texts -= _OPERATORS | set("([")
    phrases += [f"`{text}`" for text in sorted(texts, key=lambda text: (not text.isalpha(), text == ",", text))]
    if not phrases:
        phrases.append("the end of the text")
    return Expected(tuple(phrases), words, operators)
