"""Describes the tokens that the grammar accepts at a place."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

ITEM = "an item (`use`, `block`, `model`, `extern`, `recipe` or `table`)"

# Groups of terminals with a phrase for the group. Where the grammar accepts every terminal of the first set, the phrase
# replaces all terminals of both sets.
_GROUPS = tuple(
    (phrase, frozenset(signs.split()), frozenset(group.split()))
    for phrase, signs, group in (
        ("a value", "NUMBER STRING NAME", "DOTTED TRUE FALSE NOT MINUS LSQB LPAR SCAN EXPERTS REPEAT STACK"),
        ("a statement", "LET RETURN", "LOSS EMIT IF REPEAT STACK SCAN NAME"),
        (ITEM, "USE EXTERN", "BLOCK MODEL RECIPE TABLE $END"),
        (
            "a part of a recipe (`task`, `model`, `train`, `test`, `vary`, `search` or `claim`)",
            "VARY CLAIM",
            "TASK MODEL TRAIN TEST SEARCH",
        ),
        ("a part of a table (`row`, `column` or `columns`)", "ROW COLUMN", "COLUMNS"),
        ("a name", "NAME", "DOTTED"),
        ("a number", "NUMBER", ""),
        ("a string", "STRING", ""),
    )
)
# What a name is after a terminal.
_NAMED = {
    "ARROW": "a type",
    "READS": "an input",
    "COSTS": "a quantity (such as `parameters`)",
    "MAPS": "a map (such as `key(x)`)",
    "RECORDS": "what is recorded (such as `attention`)",
}
_OPERATORS = frozenset(("|>", "when", "or", "and", "==", "!=", "<", "<=", ">", ">=", "in", "..", "±", "+-", *"+-*/%"))
# Those that can also follow what is no value: the input of a loop, `random` and the number of a claim.
_OF_OTHERS = frozenset(("in", "when", "±", "+-"))


@dataclass(frozen=True)
class Expected:
    """The accepted tokens: phrases for a message, the keywords among them, and whether an operator is accepted."""

    phrases: tuple[str, ...]
    words: tuple[str, ...] = ()
    operators: bool = False

    def __str__(self) -> str:
        *first, last = self.phrases
        return f"{', '.join(first)} or {last}" if first else last


def named_after(terminal: str | None, around: str, is_read: bool) -> str | None:
    """Returns what a name is that is missing after a terminal; None if any name can follow, or something else. `around`
    is the innermost open bracket; the terminal `is_read`: it stands in a clause `reads`."""
    if terminal == "COLON":
        return "a type" if around == "(" else "a kind (such as `int`)"
    return "what is read of it (such as `causal`)" if is_read and terminal == "NAME" else _NAMED.get(terminal or "")


def expected(terminals: Iterable[str], spellings: Mapping[str, str]) -> Expected:
    """Describes terminals; `spellings` maps each terminal of fixed spelling to its spelling."""
    left = set(terminals)
    words = tuple(sorted(spellings[name] for name in left if spellings.get(name, "").isalpha()))
    phrases: list[str] = []
    for phrase, signs, group in _GROUPS:
        if signs <= left:
            phrases.append(phrase)
            left -= signs | group
    texts = {spellings[name] for name in left if name in spellings}
    operators = bool(texts & _OPERATORS - _OF_OTHERS)
    # After an expression, a missing terminator is more likely than a missing operator.
    if operators and (phrases or texts - _OPERATORS - set("([")):
        texts -= _OPERATORS | set("([")
    texts -= {"+-"}  # `±` in other signs
    phrases += [f"`{text}`" for text in sorted(texts, key=lambda text: (not text.isalpha(), text == ",", text))]
    if not phrases:
        phrases.append("the end of the text")
    return Expected(tuple(phrases), words, operators)
