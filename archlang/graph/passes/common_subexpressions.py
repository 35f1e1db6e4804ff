"""Computes once what a region computes twice: equal arithmetic, calls of pure blocks with equal statics, and calls of
one instance that draw no random numbers.

It finds more after `inline`."""

from collections.abc import Hashable, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.inline import rename, rename_inputs
from archlang.graph.operations import Arithmetic, Call, Literal, Part

_DRAWS = {"random", "training"}


def share_common(graph: Graph) -> Graph:
    """Returns the graph in which nodes of one region that compute the same are one node."""
    return replace(graph, region=_share(graph.region, graph.instances))


def _share(region: Region, instances: Mapping[str, Instance]) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    indices: dict[Hashable, int] = {}  # of the first node with each key
    for original in region.nodes:
        node = rename_inputs(original, names)
        key = _key(node, instances)
        if key is not None and key in indices:
            first = nodes[indices[key]]
            nodes[indices[key]] = replace(first, name=first.name or node.name)
            names[node.id] = first.id
            continue
        if key is not None:
            indices[key] = len(nodes)
        nodes.append(node.with_bodies(lambda body: _share(body, instances)))
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _key(node: Node, instances: Mapping[str, Instance]) -> Hashable | None:
    """Returns a key that nodes share if they compute the same; None for a node that must stay."""
    match node.operation:
        case Literal(value=value):
            return type(value), value
        case Part(index=index):
            return node.inputs, index
        case Arithmetic() as operation:
            return operation, tuple(sorted(node.inputs)) if operation.commutes else node.inputs
        case Call(instance=path) as call:
            instance = instances[path]
            if instance.pure:
                return instance.python, tuple(sorted(instance.statics.items())), node.inputs
            if is_deterministic(node, call, instances):
                return call, node.inputs
    return None


def is_deterministic(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Returns whether a call returns the same value whenever its arguments are the same.

    The signature of its block states this: it has no clause `random`. Calls without arguments, and blocks that return a
    mask with their result because they grow a sequence, count as not deterministic, so that passes leave them alone."""
    instance = instances[call.instance]
    return bool(node.inputs) and not instance.grows and _DRAWS.isdisjoint(instance.caveats)
