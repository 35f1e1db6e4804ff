"""Which calls give the same each time that they are given the same."""

from __future__ import annotations

from collections.abc import Mapping

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Call


def is_steady(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Whether a call draws no random numbers, as its signature says."""
    instance = instances[call.instance]
    draws = "random" in instance.caveats or "training" in instance.caveats
    return not instance.grows and bool(node.inputs) and not draws
