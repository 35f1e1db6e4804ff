"""Reads the beginning of a program: its tokens, and those that the grammar accepts next."""

from dataclasses import dataclass

from archlang.syntax.grammar import grammar


@dataclass(frozen=True)
class Token:
    """A token with its terminal of the grammar, such as `NAME`."""

    terminal: str
    text: str
    start: int


@dataclass(frozen=True)
class Prefix:
    """The tokens of a text, and the terminals that the grammar accepts after them."""

    tokens: tuple[Token, ...]
    accepted: frozenset[str]


def read_prefix(text: str) -> Prefix | None:
    """Returns the tokens of a text with which a program can begin; None if no program begins so."""
    from lark import UnexpectedInput

    run = grammar().parse_interactive(text, start="start")
    try:
        tokens = [*run.exhaust_lexer()]
    except UnexpectedInput:
        return None
    accepted: set[str] = run.accepts()  # type: ignore[no-untyped-call]  # lark has no annotation there
    return Prefix(tuple(Token(token.type, str(token), token.start_pos or 0) for token in tokens), frozenset(accepted))
