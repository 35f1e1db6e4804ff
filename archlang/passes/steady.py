"""Which calls give the same each time that they are given the same."""

from __future__ import annotations

from collections.abc import Mapping

from archlang.graph.graph import Instance, Node


def is_steady(call: Node, instances: Mapping[str, Instance]) -> bool:
    """Whether a call draws no random numbers, as its signature says."""
    instance = instances[str(call.attributes["instance"])]
    draws = "random" in instance.caveats or "training" in instance.caveats
    return not instance.grows and bool(call.inputs) and not draws
