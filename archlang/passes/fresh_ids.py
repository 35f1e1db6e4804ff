"""Ids that a graph does not use yet."""

from collections.abc import Iterator
from itertools import count

from archlang.graph.graph import Graph


def fresh_ids(graph: Graph) -> Iterator[str]:
    """Yields ids that no value of the graph has, without end."""
    used = [value.id for value in graph.region.inputs] + [node.id for node in graph.region.walk()]
    used += [value.id for node in graph.region.walk() for region in node.regions for value in region.inputs]
    numbers = (int(number) for number in (identity.lstrip("%") for identity in used) if number.isdecimal())
    return (f"%{number}" for number in count(1 + max(numbers, default=0)))
