"""Replaces the ids that nodes read."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from archlang.graph.graph import Node


def rename(ids: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the ids, where those among the keys of `names` are replaced by its values."""
    return tuple(names.get(identity, identity) for identity in ids)


def rename_inputs(node: Node, names: Mapping[str, str]) -> Node:
    """Returns the node with renamed inputs."""
    inputs = rename(node.inputs, names)
    return node if inputs == node.inputs else replace(node, inputs=inputs)
