"""Dissolves applied blocks: their nodes move to where they are applied. Nothing has to run before."""

from __future__ import annotations

from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Apply, Part
from archlang.graph.rename import rename, rename_inputs


def inline(graph: Graph) -> Graph:
    """The graph without `apply` nodes."""
    return replace(graph, region=_dissolve(graph.region))


def _dissolve(region: Region) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    applied: dict[str, tuple[str, ...]] = {}  # the results of each dissolved node
    for original in region.nodes:
        node = rename_inputs(original, names)
        if isinstance(node.operation, Apply):
            body = _dissolve(node.regions[0])
            inner = dict(zip((value.id for value in body.inputs), node.inputs, strict=True))
            results = rename(body.results, inner)
            hand_over = {results[0]: node.name} if len(results) == 1 else {}
            for one in body.nodes:
                made = rename_inputs(one, inner)
                nodes.append(replace(made, name=made.name or hand_over.get(made.id, "")))
            applied[node.id] = results
            if len(results) == 1:
                names[node.id] = results[0]
        elif isinstance(node.operation, Part) and node.inputs[0] in applied:
            names[node.id] = applied[node.inputs[0]][node.operation.index]
        else:
            nodes.append(replace(node, regions=tuple(map(_dissolve, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))
