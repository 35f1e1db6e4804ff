"""Replaces each applied block by its body. It needs no other pass before it."""

from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Apply, Part
from archlang.graph.rename import rename, rename_inputs


def inline(graph: Graph) -> Graph:
    """Returns the graph without `Apply` nodes."""
    return replace(graph, region=_inline(graph.region))


def _inline(region: Region) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    applied: dict[str, tuple[str, ...]] = {}  # the results of each inlined node
    for original in region.nodes:
        node = rename_inputs(original, names)
        if isinstance(node.operation, Apply):
            body = _inline(node.regions[0])
            inner = dict(zip((value.id for value in body.inputs), node.inputs, strict=True))
            results = rename(body.results, inner)
            # The node that makes the only result takes over the user's name for it.
            user_names = {results[0]: node.name} if len(results) == 1 else {}
            for body_node in body.nodes:
                moved = rename_inputs(body_node, inner)
                nodes.append(replace(moved, name=moved.name or user_names.get(moved.id, "")))
            applied[node.id] = results
            if len(results) == 1:
                names[node.id] = results[0]
        elif isinstance(node.operation, Part) and node.inputs[0] in applied:
            names[node.id] = applied[node.inputs[0]][node.operation.index]
        else:
            nodes.append(replace(node, regions=tuple(map(_inline, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))
