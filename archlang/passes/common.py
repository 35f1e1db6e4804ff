"""Computes once what is written twice in one region: equal arithmetic, calls of pure blocks with equal statics, and
calls of one block, with its weights, that draw no numbers.

`inline` and `fold` make more of it to be found."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.operations import Arithmetic, Call, Literal, Part
from archlang.graph.rename import rename, rename_inputs
from archlang.passes.determinism import is_deterministic


def share_common(graph: Graph) -> Graph:
    """The graph in which equal values of a region are one value."""
    return replace(graph, region=_share(graph.region, graph.instances))


def _share(region: Region, instances: Mapping[str, Instance]) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    first: dict[Hashable, int] = {}
    for original in region.nodes:
        node = rename_inputs(original, names)
        what = _what(node, instances)
        if what is not None and what in first:
            kept = nodes[first[what]]
            nodes[first[what]] = replace(kept, name=kept.name or node.name)
            names[node.id] = kept.id
            continue
        if what is not None:
            first[what] = len(nodes)
        regions = tuple(_share(body, instances) for body in node.regions)
        nodes.append(replace(node, regions=regions) if regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _what(node: Node, instances: Mapping[str, Instance]) -> Hashable | None:
    """What a node computes, equal for nodes that compute the same; None for one that must stay."""
    match node.operation:
        case Literal(value=value):
            return type(value), value
        case Part(index=index):
            return node.inputs, index
        case Arithmetic() as operation:
            return operation, tuple(sorted(node.inputs)) if operation.commutes else node.inputs
        case Call(instance=path):
            instance = instances[path]
            if instance.pure:
                return instance.python, tuple(sorted(instance.statics.items())), node.inputs
            if is_deterministic(node, node.operation, instances):
                return node.operation, node.inputs
    return None
