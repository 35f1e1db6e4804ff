"""Joins linear maps that read the same value into one product, in loops whose steps share their weights. `inline` must
have run; it finds more after `common`.

    repeat 20 { h <- copy_gate(gate[64](h), feedforward[64](h), h) }

becomes, where `hidden` is the first map of each of the two blocks,

    repeat 20 {
        p, q = join[gate.hidden, feedforward.hidden](h)
        h <- copy_gate(gate[64](h, hidden = p), feedforward[64](h, hidden = q), h)
    }

So do the queries, keys and values of self-attention. `invariants` then moves products of values that do not change in
the loop: keys and values of a memory are computed once.

The weights keep their places, and are concatenated once for all steps. Outside of loops the concatenation would cost
as much as the product saves, so that those maps stay apart."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.operations import Call, Join, MapPath, Part, SharedLoop
from archlang.passes.fresh_ids import fresh_ids
from archlang.types import Dim, Type


def join_maps(graph: Graph) -> Graph:
    """Returns the graph in which the maps of one value are one product, in loops with shared weights."""
    return replace(graph, region=_join_inside(graph.region, graph.instances, fresh_ids(graph)))


def _join_inside(region: Region, instances: Mapping[str, Instance], ids: Iterator[str]) -> Region:
    """Joins the maps in the loops of a region."""
    nodes = []
    for node in region.nodes:
        bodies = tuple(_join_inside(body, instances, ids) for body in node.regions)
        if isinstance(node.operation, SharedLoop):
            bodies = tuple(_join(body, instances, ids) for body in bodies)
        nodes.append(replace(node, regions=bodies) if bodies else node)
    return replace(region, nodes=tuple(nodes))


def _join(region: Region, instances: Mapping[str, Instance], ids: Iterator[str]) -> Region:
    # By the id of each value, the widths of the maps that read it.
    widths: dict[str, dict[MapPath, int]] = {}
    for node in region.nodes:
        for path, source, width in _maps(node, instances):
            widths.setdefault(source, {})[path] = width
    types = {value.id: value.type for value in region.inputs}
    types |= {node.id: node.type for node in region.nodes if len(node.types) == 1}
    products: dict[tuple[str, MapPath], str] = {}
    nodes: list[Node] = []
    for node in region.nodes:
        inputs: dict[str, str] = {}  # the ids of the call's products, by the names of its maps
        for path, source, _ in _maps(node, instances):
            if len(widths[source]) == 1:
                continue
            if (source, path) not in products:
                join, *parts = _products(source, types[source], widths[source], node, ids)
                nodes += [join, *parts]
                products.update(((source, map_), part.id) for map_, part in zip(widths[source], parts, strict=True))
            inputs[path.name] = products[source, path]
        if inputs and isinstance(node.operation, Call):
            operation = replace(node.operation, products=tuple(inputs))
            node = replace(node, operation=operation, inputs=(*node.inputs, *inputs.values()))
        nodes.append(node)
    return replace(region, nodes=tuple(nodes))


def _products(source: str, kind: Type, widths: Mapping[MapPath, int], call: Node, ids: Iterator[str]) -> list[Node]:
    """Returns the join of a value's maps, and a part for each product. `call` is the first call that reads them."""
    types = tuple(Type(kind.name, (*kind.dims[:-1], Dim.of(width))) for width in widths.values())
    join = Node(next(ids), Join(tuple(widths)), (source,), types, call.span)
    parts = [Node(next(ids), Part(index), (join.id,), (part,), call.span) for index, part in enumerate(types)]
    return [join, *parts]


def _maps(node: Node, instances: Mapping[str, Instance]) -> Iterator[tuple[MapPath, str, int]]:
    """Yields the path, the input's id and the width of each linear map that a call begins with. A call that reads
    products already yields none."""
    match node.operation:
        case Call(instance=path, products=()):
            for linear_map in instances[path].maps:
                yield MapPath(path, linear_map.name), node.inputs[linear_map.input], linear_map.width
