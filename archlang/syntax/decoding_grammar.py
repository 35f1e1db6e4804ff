"""The grammar for engines that let a language model write only what can be parsed: of llama.cpp (GBNF), or of lark.

White space is a part of the rules: words have a space between them, statements and lines of recipes begin on lines of
their own, and names are no reserved words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from archlang.syntax.grammar import grammar, spellings
from archlang.syntax.tokens import RESERVED

FORMS = ("gbnf", "lark")
_UNWRITTEN = ("MISSING", "MISSING_LINE", "missing", "missing_line", "unclear")
_FREE = ("NAME", "DOTTED", "NUMBER", "STRING")
# What stands on a line of its own, and what may.
_LINES = ("item", "statement", "part", "row", "column", "columns")
_CLAUSES = (
    "where", "block_clause", "gives", "demands", "causal", "includes", "PYTHON", "best_of", "published", "WHEN", "ELSE",
    "AND", "OR", "AT", "FROM", "CLAIMS",
)  # fmt: skip
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
_SIGNS = {
    "(": '"(" WS?', "[": '"[" WS?', ")": 'WS? ")"', "]": 'WS? "]"', "{": 'WS? "{" WS?', "}": 'WS? "}"',
    ",": '"," WS?', ":": '":" SP?', "..": '".."', "...": '"..."', "=": 'SP? "=" SP?', "|>": 'WS? "|>" SP?',
}  # fmt: skip
_TERMINALS = {
    "SP": '" "+',
    "NL": '([ \\t]* ("#" [^\\r\\n]*)? "\\n")+ [ \\t]*',
    "WS": "NL | SP",
    "WORD": "[A-Za-z0-9_]",
    "DOTTED": '[A-Za-z_] WORD* ("." [A-Za-z_] WORD*)+',
    "DIGITS": '[0-9]+ ("_" [0-9]+)*',
    "NUMBER": 'DIGITS ("." DIGITS)? ([eE] [+-]? [0-9]+)?',
    "STRING": '"\\"" [^"\\r\\n]* "\\""',
}


def decoding_grammar(form: str) -> str:
    """Returns the grammar in one of `FORMS`."""
    root = "root" if form == "gbnf" else "start"
    rules = {root: "(WS? n_program)? WS?", **_rules(), **_TERMINALS, "NAME": _name(frozenset(RESERVED))}
    sign = " ::=" if form == "gbnf" else ":"
    return "".join(f"{_written(form, name)}{sign} {_written(form, text)}\n" for name, text in rules.items())


def _written(form: str, text: str) -> str:
    """Writes rules as a form does: llama.cpp has no `_` in names, and lark no classes outside of `/…/`."""
    parts = []
    for part in _split(text):
        is_class = part.startswith("[")
        if form == "gbnf":
            parts.append(part if is_class or part.startswith('"') else part.replace("_", "-"))
        else:
            parts.append(f"/{part}/" if is_class else part)
    return "".join(parts)


def _split(text: str) -> Iterator[str]:
    """Yields the literals, the classes of characters, and what is between them."""
    place = 0
    while place < len(text):
        closer, end = {'"': '"', "[": "]"}.get(text[place]), place + 1
        while end < len(text) and (text[end] not in '"[' if closer is None else text[end] != closer):
            end += 1 + (text[end] == "\\")
        end += closer is not None
        yield text[place:end]
        place = end


def _rules() -> dict[str, str]:
    """The rules of `arch.lark` without what only recovery writes. A rule that begins with itself repeats its rest, as
    llama.cpp has no left recursion."""
    expansions: dict[str, list[list[str]]] = {}
    for rule in grammar().rules:
        symbols = [symbol.name for symbol in rule.expansion]
        if symbols == ["MINUS", rule.origin.name]:
            symbols = ["MINUS", "atom"]  # `--` may be one sign or two
        if symbols and not {*symbols} & {*_UNWRITTEN}:
            expansions.setdefault(rule.origin.name, []).append(symbols)
    expansions["program"] = expansions.pop("start")
    spaced, rules = _Spacing(expansions), dict[str, str]()
    for name, alternatives in expansions.items():
        first = [spaced.text(each) for each in alternatives if each[0] != name]
        again = [spaced.text(each, has_first=False) for each in alternatives if each[0] == name]
        text = " | ".join(first)
        rules[_rule(name)] = f"({text}) ({' | '.join(again)})*" if again else text
    return rules


def _rule(name: str) -> str:
    return f"n_{name.strip('_')}"


class _Spacing:
    """Writes white space between symbols: words need some."""

    def __init__(self, expansions: Mapping[str, list[list[str]]]) -> None:
        self._expansions = expansions
        self._words = {name for name, text in spellings().items() if text.isalpha()} | {*_FREE}
        self._first, self._last = self._ends(0), self._ends(-1)

    def _ends(self, place: int) -> dict[str, set[str]]:
        """The terminals with which each symbol can begin, or end."""
        names = {symbol for each in self._expansions.values() for symbols in each for symbol in symbols}
        ends = {
            name: {name} if name not in self._expansions else set[str]() for name in names | self._expansions.keys()
        }
        size = -1
        while size < (size := sum(map(len, ends.values()))):
            for name, alternatives in self._expansions.items():
                ends[name].update(*(ends[symbols[place]] for symbols in alternatives))
        return ends

    def text(self, symbols: Sequence[str], has_first: bool = True) -> str:
        parts = []
        for place, symbol in enumerate(symbols):
            if place:
                parts += self._between(symbols[place - 1], symbol)
            if place or has_first:
                parts.append(self._symbol(symbol, is_first=not place))
        return " ".join(parts)

    def _between(self, before: str, symbol: str) -> list[str]:
        kind = symbol
        while kind.startswith("__") and kind in self._expansions:
            kind = self._expansions[kind][0][0]
        if kind in _LINES:
            return ["NL"] * (before != "LBRACE")
        if kind in _CLAUSES:
            return ["WS"]
        closers = {"RPAR", "RSQB", "RBRACE"} | self._words
        return ["SP"] if self._first[symbol] & self._words and self._last[before] & closers else []

    def _symbol(self, symbol: str, is_first: bool) -> str:
        sign = spellings().get(symbol)
        if sign is None:
            return symbol if symbol in _FREE else _rule(symbol)
        if sign in _SIGNS:
            return _SIGNS[sign]
        return f'"{sign}"' if sign.isalpha() or is_first else f'WS "{sign}" SP'


def _name(words: frozenset[str], before: str = "") -> str:
    """What a name can be after some letters: anything that is no reserved word."""
    following = sorted({word[len(before)] for word in words if word.startswith(before) and word != before})
    letters = _LETTERS + "0123456789" * bool(before)
    others = "".join(letter for letter in letters if letter not in following)
    text = " | ".join([f"[{others}] WORD*", *(f'"{letter}" {_name(words, before + letter)}' for letter in following)])
    return f"({text})" + "?" * (bool(before) and before not in words)
