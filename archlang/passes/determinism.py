"""Tells the calls that repeat their result from those that draw random numbers."""

from collections.abc import Mapping

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Call

_DRAWS = {"random", "training"}


def is_deterministic(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Whether a call with arguments returns the same value whenever its arguments are the same.

    The signature of its block says so: it has no clause `random`. A result with a mask of its own, as a block that
    grows a sequence returns, stays where it is."""
    instance = instances[call.instance]
    return bool(node.inputs) and not instance.grows and _DRAWS.isdisjoint(instance.caveats)
