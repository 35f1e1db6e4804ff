"""The stack of lark's LALR parser, which is fed token by token and can be cut back to an earlier size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from archlang.errors import Source
from archlang.syntax.builder import TreeBuilder
from archlang.syntax.grammar import Callbacks, grammar, kinds, spellings
from archlang.syntax.tokens import RESERVED, tokens

if TYPE_CHECKING:
    from lark import Token

# Terminals that complete a signature: of those that can follow, the first does.
_FILLERS = ("RSQB", "RPAR", "EQUAL", "COLON", "MISSING", "ARROW", "PYTHON", "STRING", "NAME", "LPAR")
_LONGEST_WAY = 12
# Signs that are two signs where the grammar does not accept the whole.
_PAIRS = {"<-": ("LESSTHAN", "MINUS"), "+-": ("PLUS", "MINUS")}


class ParserStack:
    """The tokens and nodes that the parser has read. `values` and `states` shrink together."""

    def __init__(self, builder: TreeBuilder | None, start: str = "start") -> None:
        self._state = grammar().parse_interactive("", start=start).parser_state
        if builder is not None:
            # All texts share one parser; each text has its own builder.
            self._state.parse_conf.callbacks = Callbacks(builder.rules)  # type: ignore[assignment]  # is not iterated
        self._table: Any = self._state.parse_conf.states  # Any: lark's tables
        self._kinds = kinds()
        self.values: list[Any] = self._state.value_stack  # Any: tokens and nodes
        # The token that was read last, if it is a name that begins a line, and the line of that token.
        self._begun: Token | None = None
        self._line = 0

    def feed(self, token: Token) -> None:
        """Reads a token.

        Raises:
            UnexpectedToken: the grammar does not accept it."""
        from lark import UnexpectedToken

        kind, can_be_name = token.type, False
        is_update = token == "<-" and self._begun is not None and self._begun.line == token.line
        self._begun = token if kind == "NAME" and token.line != self._line else None
        self._line = token.line or 0
        if kind == "NAME" or (token in self._kinds and token.isalpha() and token not in RESERVED):
            can_be_name = True
            kind = self._kinds.get(token, "NAME")
            token.type = kind if kind in self._table[self._state.position] else "NAME"
        try:
            self._state.feed_token(token)
        except UnexpectedToken:
            token.type = kind
            # A state of the tables can accept a keyword that is possible elsewhere only.
            if can_be_name and self.accepts("NAME"):
                token.type = "NAME"
                self._state.feed_token(token)
            elif token in _PAIRS and not is_update and self.accepts(_PAIRS[token][0]):
                self._feed_pair(token)
            else:
                raise

    def _feed_pair(self, token: Token) -> None:
        start, (first, second) = token.start_pos or 0, _PAIRS[token]
        self.put(first, str(token)[0], start, start + 1)
        self.put(second, str(token)[1], start + 1, start + 2)

    def put(self, kind: str, text: str, start: int, end: int) -> None:
        """Reads a token that stands for a part of the text."""
        from lark import Token

        self._state.feed_token(Token(kind, text, start_pos=start, end_pos=end))

    def end(self) -> Any:  # Any: the node of the start rule
        """Returns the node of the whole text.

        Raises:
            UnexpectedToken: the text is incomplete."""
        from lark import Token

        return self._state.feed_token(Token("$END", ""), is_end=True)

    def accepts(self, terminal: str, settles: bool = False) -> bool:
        """Returns whether the grammar accepts a terminal next. If it does, and the stack `settles`, the rules that end
        before it are completed."""
        rules = self._rules_before(self._state.state_stack.copy(), terminal)
        for rule in (rules or ()) if settles and terminal != "$END" else ():
            self._reduce(rule)
        return rules is not None

    def _rules_before(self, states: list[Any], terminal: str) -> list[Any] | None:  # Any: lark's states and rules
        """Returns the rules that end before a terminal, which is read to some states; None if it cannot follow."""
        rules: list[Any] = []
        while True:
            action = self._table[states[-1]].get(terminal)
            if action is None:
                return None
            _, rule = action
            if not hasattr(rule, "expansion"):
                states.append(rule)
                return rules
            rules.append(rule)
            if rule.expansion:
                del states[-len(rule.expansion) :]
            states.append(self._table[states[-1]][rule.origin.name][1])
            if terminal == "$END" and states[-1] == self._state.parse_conf.end_state:
                return rules

    def complete(self, terminal: str, place: int) -> None:
        """Puts the terminals that a signature lacks before a terminal."""
        for kind in self.way_to(terminal) or ():
            self.put(kind, '""' if kind == "STRING" else spellings().get(kind, ""), place, place)

    def way_to(self, terminal: str) -> list[str] | None:
        """Returns the terminals that a signature lacks before a terminal; None if it cannot follow."""
        states, way = self._state.state_stack.copy(), list[str]()
        while self._rules_before(states.copy(), terminal) is None:
            kinds = (kind for kind in _FILLERS if self._rules_before(states.copy(), kind) is not None)
            kind = next(kinds, None)
            if kind is None or len(way) == _LONGEST_WAY:
                return None
            self._rules_before(states, kind)
            way.append(kind)
        return way

    def _reduce(self, rule: Any) -> None:  # Any: a rule of lark
        state, size = self._state, len(rule.expansion)
        parts = self.values[len(self.values) - size :]
        del self.values[len(self.values) - size :], state.state_stack[len(state.state_stack) - size :]
        value = state.parse_conf.callbacks[rule](parts)
        state.state_stack.append(self._table[state.position][rule.origin.name][1])
        self.values.append(value)

    def accepted(self) -> set[str]:
        """Returns the terminals that the grammar accepts next in a text."""
        names = self._table[self._state.position].keys() - {"MISSING", "MISSING_LINE"}
        return {name for name in names if name.isupper() and self.accepts(name)}

    def cut(self, size: int) -> None:
        """Keeps the first values."""
        del self.values[size:], self._state.state_stack[size + 1 :]

    def bracket_around(self) -> str:
        """Returns the innermost bracket that is open; empty if there is none."""
        depth = 0
        for value in reversed(self.values):
            kind = terminal(value)
            depth += (kind in ("RPAR", "RSQB", "RBRACE")) - (kind in ("LPAR", "LSQB", "LBRACE"))
            if depth < 0:
                return str(value)
        return ""


def terminal(value: object) -> str:
    """Returns the terminal of a token; empty for anything else."""
    return str(getattr(value, "type", "")) if isinstance(value, str) else ""


@dataclass(frozen=True)
class Prefix:
    """The tokens of a text with which a program can begin. `pending` are the tokens of the rules that the text does not
    complete, with the names of the completed rules between them; `accepted` are the terminals that the grammar accepts
    next."""

    tokens: list[Token]
    pending: list[Token | str]
    accepted: set[str]


def read_prefix(text: str) -> Prefix | None:
    """Returns the tokens of a text with which a program can begin; None if no program begins so."""
    from lark import UnexpectedToken

    stack = ParserStack(None)
    code, _, excess = tokens(Source("", text))
    try:
        for token in code:
            stack.feed(token)
    except UnexpectedToken:
        return None
    pending = [value if terminal(value) else str(value.data) for value in stack.values]
    return None if excess is not None else Prefix(code, pending, stack.accepted())
