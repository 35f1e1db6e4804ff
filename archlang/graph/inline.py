"""Replaces ids that nodes read, and nodes: `inline` replaces each applied block by its body."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Apply, Part

Expansion = tuple[Sequence[Node], tuple[str, ...]]
"""the nodes in place of one, and the ids of its results"""


def rename(ids: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    """Returns the ids, where those among the keys of `names` are replaced by its values."""
    return tuple(names.get(identity, identity) for identity in ids)


def rename_inputs(node: Node, names: Mapping[str, str]) -> Node:
    """Returns the node with renamed inputs."""
    if names.keys().isdisjoint(node.inputs):
        return node
    return replace(node, inputs=rename(node.inputs, names))


def expanded(region: Region, expand: Callable[[Node], Expansion | None]) -> Region:
    """Returns the region, and those in it, with the expansion of each node that has one. What read a result of such a
    node reads that of the expansion."""
    nodes: list[Node] = []
    names: dict[str, str] = {}
    results: dict[str, tuple[str, ...]] = {}  # of each node that was replaced
    for original in region.nodes:
        node = rename_inputs(original, names)
        if (expansion := expand(node)) is not None:
            inner, results[node.id] = expansion
            nodes += inner
            if len(node.types) == 1:
                names[node.id] = results[node.id][0]
        elif isinstance(node.operation, Part) and node.inputs[0] in results:
            names[node.id] = results[node.inputs[0]][node.operation.index]
        else:
            nodes.append(node.with_bodies(lambda body: expanded(body, expand)))
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def inline(graph: Graph) -> Graph:
    """Returns the graph without `Apply` nodes. It needs no other pass before it."""
    return replace(graph, region=expanded(graph.region, _applied))


def _applied(node: Node) -> Expansion | None:
    if not isinstance(node.operation, Apply):
        return None
    body = expanded(node.regions[0], _applied)
    inner = dict(zip((value.id for value in body.inputs), node.inputs, strict=True))
    results = rename(body.results, inner)
    # The node that makes the only result takes over the user's name for it.
    user_names = {results[0]: node.name} if len(results) == 1 else {}
    moved = [rename_inputs(body_node, inner) for body_node in body.nodes]
    return [
        replace(own, name=user_names[own.id]) if own.id in user_names and not own.name else own for own in moved
    ], results
