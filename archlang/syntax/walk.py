"""Visiting every node of a tree."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.syntax.tree import Node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in the order of the text."""
    # A stack, as generators in one another would take time for each level above each node.
    waiting: list[Node] = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(_children(current)))


def _children(node: Node) -> list[Node]:
    children: list[Node] = []
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, Node):
            children.append(value)
        elif isinstance(value, tuple):
            children += [part for part in value if isinstance(part, Node)]
    return children
