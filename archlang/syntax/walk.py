"""Visiting every node of a tree."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from archlang.syntax.tree import Node


def walk(node: Node) -> Iterator[Node]:
    """The node and everything below it, in the order of the text."""
    yield node
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, Node):
            yield from walk(value)
        elif isinstance(value, tuple):
            for one in value:
                if isinstance(one, Node):
                    yield from walk(one)
