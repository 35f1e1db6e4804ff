"""Ids that a graph has not used yet."""

from __future__ import annotations

from itertools import count

from archlang.graph.graph import Graph


def fresh_numbers(graph: Graph) -> count[int]:
    """Numbers from which ids can be made."""
    used = [value.id for value in graph.region.inputs] + [node.id for node in graph.region.walk()]
    used += [value.id for node in graph.region.walk() for region in node.regions for value in region.inputs]
    return count(1 + max((int(one.lstrip("%")) for one in used if one.lstrip("%").isdecimal()), default=0))
