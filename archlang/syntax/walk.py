"""Visits every node of a tree."""

from collections.abc import Iterator

from archlang.syntax.tree import Node


def walk(node: Node) -> Iterator[Node]:
    """Yields the node and all nodes below it, in the order of the text."""
    # A stack, because nested generators take time for each level above each node.
    stack: list[Node] = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(children(current)))


def children(node: Node) -> list[Node]:
    """Returns the nodes directly below a node, in the order of its fields."""
    nodes: list[Node] = []
    for name in node.__dataclass_fields__:
        value = getattr(node, name)
        if isinstance(value, Node):
            nodes.append(value)
        elif isinstance(value, tuple):
            nodes += [part for part in value if isinstance(part, Node)]
    return nodes
