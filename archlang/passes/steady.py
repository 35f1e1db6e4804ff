"""Which calls give the same each time that they are given the same."""

from __future__ import annotations

from collections.abc import Mapping

from archlang.graph.graph import Instance, Node

LIBRARY = "archlang.blocks."
# Blocks of the library that draw numbers, whatever their statics are.
DRAWING = frozenset({"addresses", "pointer_unit"})


def is_steady(call: Node, instances: Mapping[str, Instance]) -> bool:
    """Whether a call draws no numbers. Of a block from outside of the library only `pure` says so."""
    instance = instances[str(call.attributes["instance"])]
    if instance.grows or not call.inputs:
        return False
    drops = any("dropout" in name and value for name, value in instance.statics.items())
    ours = instance.python.startswith(LIBRARY) and instance.block not in DRAWING and not drops
    return instance.pure or (ours and instance.block != "dropout")
