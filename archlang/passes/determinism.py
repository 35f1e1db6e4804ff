"""Which calls return the same result whenever their arguments are the same."""

from collections.abc import Mapping

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Call

_DRAWS = {"random", "training"}


def is_deterministic(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Returns whether a call returns the same value whenever its arguments are the same.

    The signature of its block states this: it has no clause `random`. Calls without arguments, and blocks that return a
    mask with their result because they grow a sequence, count as not deterministic, so that passes leave them alone."""
    instance = instances[call.instance]
    return bool(node.inputs) and not instance.grows and _DRAWS.isdisjoint(instance.caveats)
