"""Values that stand in for others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from archlang.graph.graph import Node


def rename(ids: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """The ids, with what stands in for them."""
    return tuple(names.get(one, one) for one in ids)


def rename_inputs(node: Node, names: Mapping[str, str]) -> Node:
    """The node, reading what stands in for its inputs."""
    inputs = rename(node.inputs, names)
    return node if inputs == node.inputs else replace(node, inputs=inputs)
