"""Computes once what a graph computes several times.

`share_common`: in a region equal arithmetic, calls of pure blocks with equal statics, and calls of one instance that
draw no random numbers. It finds more after `inline`.

`hoist_invariants`: values that are the same in every step of a loop, and linear maps that blocks apply to such values.
`inline` must have run.

    repeat 20 { h <- norm(h + attention[8](h, norm(m))) }

becomes, where `key` and `value` are maps of the block,

    k = norm(m)
    p, q = attention.key(k), attention.value(k)
    repeat 20 { h <- norm(h + attention[8](h, k, key = p, value = q)) }

A stack has other weights in each step, and so keeps its values."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from archlang.graph.graph import Graph, Input, Instance, Node, Region, loop_layout
from archlang.graph.inline import rename, rename_inputs
from archlang.graph.operations import Arithmetic, Call, Literal, Part, Product, SharedLoop
from archlang.types import Dim, Type

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
        key = _computation_key(node, instances)
        if key is not None and key in indices:
            first = nodes[indices[key]]
            nodes[indices[key]] = replace(first, name=first.name or node.name)
            names[node.id] = first.id
            continue
        if key is not None:
            indices[key] = len(nodes)
        nodes.append(node.with_bodies(lambda body: _share(body, instances)))
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _computation_key(node: Node, instances: Mapping[str, Instance]) -> Hashable | None:
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


def hoist_invariants(graph: Graph) -> Graph:
    """Returns the graph in which loops with shared weights compute only values that change."""
    return replace(graph, region=_hoist(graph.region, graph.instances, fresh_ids(graph)))


def fresh_ids(graph: Graph) -> Iterator[str]:
    """Yields ids that no value of the graph has, without end."""
    regions = [*graph.region.regions()]
    used = [value.id for region in regions for value in region.inputs]
    used += [node.id for region in regions for node in region.nodes]
    numbers = (int(number) for number in (identity.lstrip("%") for identity in used) if number.isdecimal())
    return (f"%{number}" for number in count(1 + max(numbers, default=0)))


def _hoist(region: Region, instances: Mapping[str, Instance], ids: Iterator[str]) -> Region:
    nodes: list[Node] = []
    for node in region.nodes:
        # Inner loops first: a value that leaves one may leave the outer loop too.
        loop = node.with_bodies(lambda body: _hoist(body, instances, ids))
        if isinstance(loop.operation, SharedLoop):
            hoisted, loop = _invariant_and_rest(loop, instances, ids)
            nodes.extend(hoisted)
        nodes.append(loop)
    return replace(region, nodes=tuple(nodes))


def _invariant_and_rest(loop: Node, instances: Mapping[str, Instance], ids: Iterator[str]) -> tuple[list[Node], Node]:
    layout, body = loop_layout(loop), loop.regions[0]
    captured = body.inputs[layout.inner_captured :]
    # The outer ids of the values that do not change, by their ids in the body.
    outer_ids = dict(zip((value.id for value in captured), loop.inputs[layout.outer_captured :], strict=True))
    types = {value.id: value.type for value in captured}
    literals = {node.id: node for node in body.nodes if isinstance(node.operation, Literal)}
    hoisted: list[Node] = []
    for node in body.nodes:
        is_invariant = all(source in outer_ids or source in literals for source in node.inputs)
        is_captured = any(source in outer_ids for source in node.inputs)
        if not is_invariant or not is_captured or not _is_deterministic(node, instances):
            continue
        for source in node.inputs:
            if source not in outer_ids:
                literal = replace(literals[source], id=next(ids))
                hoisted.append(literal)
                outer_ids[source] = literal.id
        outside = replace(rename_inputs(node, outer_ids), id=next(ids))
        hoisted.append(outside)
        outer_ids[node.id], types[node.id] = outside.id, node.type
    left = {node.id: node for node in body.nodes if node.id in outer_ids and node.id not in literals}
    rest = [node for node in body.nodes if node.id not in left]
    rest, products = _hoist_maps(rest, types, instances, ids)
    if not left and not products:
        return [], loop
    # The rest of the body captures only the values that it reads.
    read = {*body.results, *(source for node in rest for source in node.inputs)}
    needed = [node for node in left.values() if node.id in read]
    names = {node.id: next(ids) for node in needed}
    inputs = [Input(names[node.id], node.type, node.name) for node in needed]
    inputs += [Input(inner, product.type) for inner, product in products.items()]
    smaller_body = Region(
        (*body.inputs, *inputs), tuple(rename_inputs(node, names) for node in rest), rename(body.results, names)
    )
    hoisted += [rename_inputs(product, outer_ids) for product in products.values()]
    added = [*(outer_ids[node.id] for node in needed), *(product.id for product in products.values())]
    return hoisted, replace(loop, inputs=(*loop.inputs, *added), regions=(smaller_body,))


def _hoist_maps(
    nodes: Sequence[Node], types: Mapping[str, Type], instances: Mapping[str, Instance], ids: Iterator[str]
) -> tuple[list[Node], dict[str, Node]]:
    """Returns the nodes of a body, whose calls read products; and these products of the values that do not change,
    which have `types`, by their ids in the body."""
    products: dict[str, Node] = {}
    inner_ids: dict[tuple[Product, str], str] = {}
    rest = []
    for node in nodes:
        given: dict[str, str] = {}
        for operation, source, width in _maps(node, instances):
            if source not in types:
                continue
            if (operation, source) not in inner_ids:
                inner_ids[operation, source] = next(ids)
                kind = Type(types[source].name, (*types[source].dims[:-1], Dim.of(width)))
                products[inner_ids[operation, source]] = Node(next(ids), operation, (source,), (kind,), node.span)
            given[operation.name] = inner_ids[operation, source]
        if given and isinstance(node.operation, Call):
            call = replace(node.operation, products=tuple(given))
            node = replace(node, operation=call, inputs=(*node.inputs, *given.values()))
        rest.append(node)
    return rest, products


def _maps(node: Node, instances: Mapping[str, Instance]) -> Iterator[tuple[Product, str, int]]:
    """Yields each linear map that a call begins with, with its input and its width. A call that reads products already
    yields none."""
    match node.operation:
        case Call(instance=path, products=()):
            for linear_map in instances[path].maps:
                yield Product(path, linear_map.name), node.inputs[linear_map.input], linear_map.width


def _is_deterministic(node: Node, instances: Mapping[str, Instance]) -> bool:
    if isinstance(node.operation, Call):
        return is_deterministic(node, node.operation, instances)
    return isinstance(node.operation, Arithmetic | Product | Part)
