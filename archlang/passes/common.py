"""Computes once what is written twice in one region: equal arithmetic, calls of pure blocks with equal statics, and
calls of one block, with its weights, that draw no numbers.

`inline` and `fold` make more of it to be found."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace

from archlang.graph.graph import ARITHMETIC, Graph, Instance, Node, Region
from archlang.graph.rename import rename, rename_inputs
from archlang.passes.steady import is_steady

_COMMUTES = ("add", "multiply")


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
    if node.op == "number":
        value = node.attributes["value"]
        return node.op, type(value), value
    if node.op == "part":
        return node.op, node.inputs, node.attributes["index"]
    if node.op in ARITHMETIC:
        return node.op, tuple(sorted(node.inputs)) if node.op in _COMMUTES else node.inputs
    if node.op == "call":
        path = node.attributes["instance"]
        assert isinstance(path, str)
        instance = instances[path]
        if instance.pure:
            return instance.python, tuple(sorted(instance.statics.items())), node.inputs
        if is_steady(node, instances):
            return path, node.inputs, node.given
    return None
