"""Makes one product of linear maps that read the same value, in loops whose steps share their weights. `inline` must
have run; `common` lets it find more.

    repeat 20 { h <- copy_gate(gate[64](h), feedforward[64](h), h) }

becomes, where `hidden` is the first map of each of the two blocks,

    repeat 20 {
        p, q = join[gate.hidden, feedforward.hidden](h)
        h <- copy_gate(gate[64](h, hidden = p), feedforward[64](h, hidden = q), h)
    }

and so do the queries, keys and values of attention to oneself. Products of what does not change in the loop are in
reach of `invariants` then: keys and values of a memory are computed once.

The weights stay where they are, and are laid below each other once for all steps. Elsewhere that would cost as much as
it spares, so that other maps are left alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from archlang.graph.facts import LinearMap
from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.operations import Call, Join, MapPath, Part, SharedLoop
from archlang.passes.fresh import fresh_numbers
from archlang.types import Dim, Type


def join_maps(graph: Graph) -> Graph:
    """The graph in which maps of one value are one product."""
    return replace(graph, region=_join(graph.region, graph.instances, fresh_numbers(graph), shared=False))


def _join(region: Region, instances: Mapping[str, Instance], fresh: count[int], shared: bool) -> Region:
    nodes = tuple(
        replace(
            node,
            regions=tuple(_join(one, instances, fresh, isinstance(node.operation, SharedLoop)) for one in node.regions),
        )
        if node.regions
        else node
        for node in region.nodes
    )
    if not shared:
        return replace(region, nodes=nodes)
    # For each value, the maps that read it with their widths.
    readers: dict[str, dict[MapPath, int]] = {}
    for node in nodes:
        for linear in _maps(node, instances):
            readers.setdefault(node.inputs[linear.input], {})[MapPath(node.instance or "", linear.name)] = linear.width
    types = {value.id: value.type for value in region.inputs}
    types |= {node.id: node.type for node in nodes if len(node.types) == 1}
    products: dict[tuple[str, MapPath], str] = {}
    made: list[Node] = []
    for node in nodes:
        given: dict[str, str] = {}
        for linear in _maps(node, instances):
            source, path = node.inputs[linear.input], MapPath(node.instance or "", linear.name)
            if len(readers[source]) == 1:
                continue
            if (source, path) not in products:
                whole, *parts = _products(source, types[source], readers[source], node, fresh)
                made += [whole, *parts]
                products.update(((source, one), part.id) for one, part in zip(readers[source], parts, strict=True))
            given[linear.name] = products[source, path]
        if given and isinstance(node.operation, Call):
            operation = replace(node.operation, products=tuple(given))
            node = replace(node, operation=operation, inputs=(*node.inputs, *given.values()))
        made.append(node)
    return replace(region, nodes=tuple(made))


def _products(source: str, kind: Type, maps: Mapping[MapPath, int], first: Node, fresh: count[int]) -> list[Node]:
    """The product of a value with some maps, and its parts."""
    types = tuple(Type(kind.name, (*kind.dims[:-1], Dim.of(width))) for width in maps.values())
    whole = Node(f"%{next(fresh)}", Join(tuple(maps)), (source,), types, first.span)
    parts = [Node(f"%{next(fresh)}", Part(index), (whole.id,), (one,), first.span) for index, one in enumerate(types)]
    return [whole, *parts]


def _maps(node: Node, instances: Mapping[str, Instance]) -> tuple[LinearMap, ...]:
    """The linear maps that a call begins with. A call that is given its products has none left."""
    match node.operation:
        case Call(instance=path, products=()):
            return instances[path].maps
    return ()
