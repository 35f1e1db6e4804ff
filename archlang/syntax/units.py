"""Cuts the tokens of a text into items, and those of an item into units: statements, parts, and headers with bodies.

Braces say where a body ends; only where they do not balance, the indentation does. Braces that are missing are added as
empty tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import TYPE_CHECKING

from archlang.syntax.tokens import (
    BINDERS,
    CLOSERS,
    ENDS_OF_VALUES,
    ITEM_WORDS,
    LINE_WORDS,
    PART_WORDS,
    RESERVED,
    STATEMENT_WORDS,
    closers,
)

if TYPE_CHECKING:
    from lark import Token

_RECIPES = ("recipe", "table")
_LOOPS = ("repeat", "stack", "scan", "experts")
FOREIGN_ELSE = ("elif", "elsif", "elseif")
_HEADERS = ("if", "else", *FOREIGN_ELSE, "for", "while", *_LOOPS)
# Words with which a line continues the one before it, and words before which a line does not end.
_CONTINUING = frozenset(
    (
        "else",
        "in",
        "when",
        "and",
        "or",
        "as",
        "at",
        "by",
        "carry",
        "after",
        "halting",
        "drawn",
        "truncated",
        "settled",
        "growing",
    )
)
_CONTINUING_PARTS = _CONTINUING | {"claims", "best", "from", "log", "of", "average"}
_UNFINISHED = frozenset(
    ("at", "from", "in", "of", "by", "carry", "claims", "median", "and", "or", "not", "when", "else")
)
_BEFORE_BOUND = ("let", "loss", "repeat", "stack")


@dataclass
class TokenGroup:
    """The tokens of a statement, or of a header. The `opener` and the `closer` of a body are empty tokens if the text
    lacks them."""

    tokens: list[Token]
    opener: Token | None = None
    body: list[TokenGroup] = field(default_factory=list)
    closer: Token | None = None

    @property
    def first(self) -> Token:
        return self.tokens[0] if self.tokens else self.opener  # type: ignore[return-value]  # one of them is there


@dataclass(frozen=True)
class OddBrace:
    """A brace without the other one: of a `{`, `noticed` is the token before which the `}` is missing, None at the end
    of the item."""

    brace: Token
    noticed: Token | None = None


def is_first(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether a token is the first of its line."""
    return index == 0 or tokens[index - 1].line != tokens[index].line


def is_word(token: Token | None) -> bool:
    return bool(token) and (token[0].isalpha() or token[0] == "_")  # type: ignore[index]  # it is not None


def is_named(token: Token | None) -> bool:
    """Returns whether a token is a word or a string, as after the first word of a line of a recipe."""
    return is_word(token) or (bool(token) and token[0] == '"')  # type: ignore[index]  # it is not None


def begins_statement(tokens: Sequence[Token], index: int) -> bool:
    """Returns whether a word is one that begins statements; `loss` does only before a name on its line."""
    token, following = tokens[index], tokens[index + 1 : index + 2]
    is_name = token == "loss" and not (following and following[0].line == token.line and is_word(following[0]))
    return token in STATEMENT_WORDS and not is_name


def items(tokens: list[Token]) -> Iterator[list[Token]]:
    """Yields the tokens of each item, and of what stands before the first one."""
    heads = closers(tokens)
    start, depth, has_body = 0, 0, False
    for index, token in enumerate(tokens):
        is_complete = has_body and depth == 0 and is_word(token) and is_first(tokens, index) and token.column == 1
        if index > start and (
            is_complete or (token in ITEM_WORDS and _begins_item(tokens, start, index, depth, heads))
        ):
            yield tokens[start:index]
            start, depth, has_body = index, 0, False
        has_body = has_body or token == "{"
        depth = max(0, depth + (token == "{") - (token == "}"))
    if tokens:
        yield tokens[start:]


def _begins_item(tokens: list[Token], start: int, index: int, depth: int, heads: dict[int, int]) -> bool:
    token, following = tokens[index], tokens[index + 1 : index + 3]
    if not is_first(tokens, index) or following[:1] in (["="], ["<-"], [":"], [","], ["]"], [")"]):
        return False
    has_name = bool(following) and following[0].line == token.line and is_named(following[0])
    if token in ("model", "task"):
        end = index + 2
        end = heads.get(end, end) + 1 if tokens[end : end + 1] == ["["] else end
        if tokens[end : end + 1] in (["("], ["->"]):
            return depth == 0 or token.column == 1
        is_part = tokens[start] in _RECIPES if depth else (token.column or 0) > (tokens[start].column or 0)
        return token == "model" and token.column == 1 and has_name and not is_part
    return depth == 0 or (token.column == 1 and has_name)


@dataclass
class _Open:
    brace: Token
    indent: int
    body: int | None = None


class _Layout:
    """Balances the braces of an item by its indentation."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._open: list[_Open] = []
        self._balanced: list[Token] = []
        self._odd: list[OddBrace] = []
        # The last line of each indentation: its column, and where it begins in the balanced tokens.
        self._lines: list[tuple[int, int]] = []

    def balance(self) -> tuple[list[Token], list[OddBrace]]:
        line = statement = 1
        for index, token in enumerate(self._tokens):
            if is_first(self._tokens, index):
                line = token.column or 1
                self._begin_line(index, token, line)
                around = self._open[-1].body if self._open else 1
                if token in ("}", "else") or line <= (around or line) or _begins_line_of_body(self._tokens, index):
                    statement = line
            if _colon_ends_header(self._tokens, index):
                self._odd.append(OddBrace(token))
                self._open.append(_Open(token, line))
                self._balanced.append(_empty("LBRACE", token, is_written=True))
                continue
            if (
                token == "else"
                and self._open
                and self._balanced[-1].type != "RBRACE"
                and _begins_branch(self._tokens, index)
            ):
                self._close_missing(token)
            if token == "{":
                self._open.append(_Open(token, statement))
            if token == "}":
                self._read_closing_brace(index, token, line)
                if is_first(self._tokens, index):
                    self._lines = [each for each in self._lines if each[0] < line]
                    self._lines.append((line, len(self._balanced)))
            else:
                self._balanced.append(token)
        while self._open:
            self._close_missing(None)
        return self._balanced, self._odd

    def _begin_line(self, index: int, token: Token, column: int) -> None:
        if token in CLOSERS or not is_word(token):
            return
        if self._open and self._open[-1].body is None:
            self._open[-1].body = column
        while self._open and column <= self._open[-1].indent < (self._open[-1].body or 0):
            self._close_missing(token)
        while self._lines and self._lines[-1][0] >= column:
            self._lines.pop()
        self._lines.append((column, len(self._balanced)))

    def _read_closing_brace(self, index: int, token: Token, line: int) -> None:
        begins_line = is_first(self._tokens, index)
        while begins_line and len(self._open) > 1 and self._open[-1].indent > line:
            self._close_missing(token)
        if begins_line and (not self._open or self._open[-1].indent != line) and self._open_missing(line):
            self._balanced.append(token)
        elif self._open and not self._continues_after_brace(index, self._open[-1].indent):
            self._open.pop()
            self._balanced.append(token)
        else:
            self._odd.append(OddBrace(token))

    def _continues_after_brace(self, index: int, indent: int) -> bool:
        line, brace = self._tokens[index].line, self._open[-1].brace
        if brace.line == line:
            return False
        following = next((each for each in self._tokens[index + 1 :] if each.line != line), None)
        if following is None:
            return False
        if len(self._open) == 1 and is_first(self._tokens, index) and self._tokens[index].column == indent:
            return False  # the header of the lines after it is missing
        if self._tokens[index + 1].line == line:
            return False
        column = following.column or 1
        return column > indent or (following == "}" and column == indent)

    def _open_missing(self, column: int) -> bool:
        """Adds the `{` of the last line with an indentation, if a body follows it; returns whether it did."""
        header = next((place for indent, place in reversed(self._lines) if indent == column), None)
        if header is None and self._open:
            return False
        header = header or 0
        tokens, pairs, index = self._balanced, closers(self._balanced[header:]), header
        while index < len(tokens):
            if is_first(tokens, index) and (tokens[index].column or 0) > column and _begins_line_of_body(tokens, index):
                tokens.insert(index, _empty("LBRACE", tokens[max(0, index - 1)]))
                return True
            index = header + pairs.get(index - header, index - header) + 1
        return False

    def _close_missing(self, noticed: Token | None) -> None:
        brace = self._open.pop().brace
        if brace != ":":
            self._odd.append(OddBrace(brace, noticed))
        self._balanced.append(_empty("RBRACE", self._balanced[-1], is_written=brace == ":"))


def _begins_line_of_body(tokens: list[Token], index: int) -> bool:
    token, following = tokens[index], tokens[index + 1 : index + 2]
    return is_first(tokens, index) and (
        begins_statement(tokens, index) or token in PART_WORDS or (is_word(token) and following in (["="], ["<-"]))
    )


def _colon_ends_header(tokens: list[Token], index: int) -> bool:
    if tokens[index] != ":" or index + 1 == len(tokens) or tokens[index + 1].line == tokens[index].line:
        return False
    line = [*takewhile(lambda token: token.line == tokens[index].line, reversed(tokens[:index]))]
    is_header = any(token in _HEADERS or token in ITEM_WORDS for token in line)
    is_balanced = sum((token in ("(", "[")) - (token in (")", "]")) for token in line) == 0
    return is_header and is_balanced and (tokens[index + 1].column or 0) > (line[-1].column or 0)


def _begins_branch(tokens: list[Token], index: int) -> bool:
    if tokens[index + 1 : index + 2] not in (["{"], ["if"]):
        return False
    line = (token for token in islice(tokens, index + 1, None) if token.line != tokens[index].line or token == "{")
    return next(line, None) == "{"


def _empty(kind: str, before: Token, is_written: bool = False) -> Token:
    """Returns a brace that the text lacks, or that another sign stands for, at the end of a token."""
    from lark import Token

    return Token(kind, "{" if is_written else "", before.end_pos, before.line, 0, None, None, before.end_pos)


def cut(tokens: list[Token]) -> tuple[list[TokenGroup], list[OddBrace]]:
    """Returns the units of an item, of which the first is its header, and the braces without the other one."""
    odd: list[OddBrace] = []
    is_balanced = 2 * len(closers(tokens, ("LBRACE",))) == sum(token in ("{", "}") for token in tokens)
    if not is_balanced or any(_colon_ends_header(tokens, index) for index in range(len(tokens))):
        tokens, odd = _Layout(tokens).balance()
    return _Cutter(tokens).read(), odd


class _Cutter:
    """Cuts the tokens of an item whose braces balance."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._closers = closers(tokens, ("LBRACE",))
        self._place = 0
        # The column of each line.
        self._columns = {token.line: token.column or 0 for token in reversed(tokens)}

    def read(self) -> list[TokenGroup]:
        """Returns the header of the item with its body, and what follows it."""
        tokens = self._tokens
        opener = next((index for index, token in enumerate(tokens) if token.type == "LBRACE"), len(tokens))
        header = TokenGroup(tokens[:opener])  # it may be empty
        if opener == len(tokens):
            return [header]
        self._place = opener
        self._read_body(header, tokens[0])
        rest: list[TokenGroup] = []
        for index in range(self._place, len(tokens)):
            if is_first(tokens, index) or not rest:
                rest.append(TokenGroup([]))
            rest[-1].tokens.append(tokens[index])
        return [header, *rest]

    def _read_body(self, unit: TokenGroup, word: Token) -> None:
        unit.opener, end = self._tokens[self._place], self._closers[self._place]
        self._place += 1
        first = self._tokens[self._place : self._place + 2]
        is_recipe = word in _RECIPES
        if word not in ITEM_WORDS and len(first) == 2 and first[0] in PART_WORDS:
            is_recipe = is_named(first[1])
        unit.body = self._units(end, is_recipe)
        unit.closer = self._tokens[end]
        self._place = end + 1

    def _units(self, end: int, is_recipe: bool) -> list[TokenGroup]:
        units: list[TokenGroup] = []
        current: list[Token] = []
        parens: list[Token] = []
        indent = self._tokens[self._place].column or 0
        while self._place < end:
            place, token = self._place, self._tokens[self._place]
            if current and self._begins_unit(place, current, parens, is_recipe, indent):
                units.append(TokenGroup(current))
                current, parens = [], []
            if token.type == "LBRACE" and not is_recipe:
                units.append(TokenGroup(current))
                self._read_body(units[-1], token)
                current, parens = [], []
                continue
            if token in ("(", "["):
                parens.append(token)
            elif token in (")", "]") and parens:
                parens.pop()
            current.append(token)
            self._place += 1
        return [*units, TokenGroup(current)] if current else units

    def _begins_unit(self, place: int, current: list[Token], parens: list[Token], is_recipe: bool, indent: int) -> bool:
        token, before = self._tokens[place], self._tokens[place - 1]
        following = self._tokens[place + 1] if place + 1 < len(self._tokens) else None
        begins_line, column = before.line != token.line, token.column or 0
        is_bound = following in BINDERS
        outer = self._columns[parens[0].line] if parens else column
        if is_recipe:
            if token in LINE_WORDS and begins_line:
                is_static = is_bound and (bool(parens) or column > indent)
                return column <= outer and not is_static and not (before == "," and column > indent)
            return begins_line and not parens and self._is_unknown_line(place, indent, _CONTINUING_PARTS)
        if begins_statement(self._tokens, place):
            return self._begins_statement(place, current, begins_line, bool(parens))
        if is_bound and is_word(token) and token not in ("when", "else"):
            if parens:
                return begins_line and (following == "<-" or parens[-1] == "(" or column <= outer)
            is_statement = before.type in ENDS_OF_VALUES and current[-1] not in _BEFORE_BOUND
            return is_statement or (begins_line and (before != "," or column <= indent))
        if token in ("scan", "experts") and begins_line and not parens:
            return True
        return begins_line and not parens and self._is_unknown_line(place, indent, _CONTINUING)

    def _begins_statement(self, place: int, current: list[Token], begins_line: bool, is_nested: bool) -> bool:
        token, before = self._tokens[place], self._tokens[place - 1]
        if begins_line:
            return token != "if" or before != "else"
        if token == "if" and len(current) == 1 and before.type == "NAME":
            return False
        if is_nested or before in (*BINDERS, "return", "emit", "else"):
            return False
        return token != "if"

    def _is_unknown_line(self, place: int, indent: int, continuing: frozenset[str]) -> bool:
        """Returns whether a line that begins as no other one does not go on with the line before it."""
        token, before = self._tokens[place], self._tokens[place - 1]
        is_start = is_word(token) or token.type in ("NUMBER", "STRING", "UNKNOWN")
        if not is_start or (token.column or 0) > indent or token in continuing:
            return False
        is_end = before.type in (*ENDS_OF_VALUES, "RBRACE") or (before == "-" and continuing is _CONTINUING_PARTS)
        return before not in _UNFINISHED and (is_end or (is_word(before) and before not in RESERVED))
