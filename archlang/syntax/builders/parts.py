"""The parts that the parser hands to a rule: tokens, nodes, and the groups and clauses made of them."""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from archlang.source import Span
from archlang.syntax.tree import Node

# The tokens and nodes of a rule, with None for each optional part that is missing. The grammar, not Python, says which
# part has which type.
Parts = list[Any]  # Any: see above
N = TypeVar("N", bound=Node)


class Group(NamedTuple):
    """The nodes between two brackets, with the offsets of the brackets."""

    nodes: tuple[Node, ...]
    start: int
    end: int


class Clause(NamedTuple):
    """A clause of a signature: the word that it begins with (`caveat` for a caveat), and its parts."""

    word: str
    nodes: tuple[Node, ...]
    span: Span


def nodes_of(parts: Parts) -> tuple[Node, ...]:
    return tuple(part for part in parts if isinstance(part, Node))


def nodes_of_kind(kind: type[N], group: Group | None) -> tuple[N, ...]:
    return () if group is None else tuple(node for node in group.nodes if isinstance(node, kind))


def clause_nodes(clauses: Sequence[Clause | None], word: str, kind: type[N]) -> tuple[N, ...]:
    nodes = (node for clause in clauses if clause and clause.word == word for node in clause.nodes)
    return tuple(node for node in nodes if isinstance(node, kind))


def start_of(part: Any) -> int:  # Any: a token, a node, a group, or a tuple that begins with one
    if isinstance(part, Node):
        return part.span.start
    if isinstance(part, Group):
        return part.start
    if isinstance(part, tuple):
        return start_of(part[0])
    place: int = part.start_pos
    return place


def end_of(part: Any) -> int:  # Any: a token, a node, a group, a clause, or a tuple of these and of what has no place
    if isinstance(part, Node | Clause):
        return part.span.end
    if isinstance(part, Group):
        return part.end
    if isinstance(part, tuple):
        return end_of(next(each for each in reversed(part) if each is not None and not isinstance(each, bool)))
    place: int = part.end_pos
    return place
