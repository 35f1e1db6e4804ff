"""Moves values that are the same in every step out of a loop: arithmetic, and calls of blocks that draw no random
numbers, on values from outside. `inline` must have run.

    repeat 20 { h <- norm(h + attention[8](h, norm(m))) }

becomes

    k = norm(m)
    repeat 20 { h <- norm(h + attention[8](h, k)) }

The products that `join` takes out of a block move too: keys and values of a memory are computed once. A stack has
other weights in each step, and so keeps its values."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.loop_layout import loop_layout
from archlang.graph.operations import Arithmetic, Call, Join, Literal, Part, SharedLoop
from archlang.graph.rename import rename, rename_inputs
from archlang.passes.determinism import is_deterministic
from archlang.passes.fresh_ids import fresh_ids


def hoist_invariants(graph: Graph) -> Graph:
    """Returns the graph in which loops with shared weights compute only values that change."""
    return replace(graph, region=_hoist(graph.region, graph.instances, fresh_ids(graph)))


def _hoist(region: Region, instances: Mapping[str, Instance], ids: Iterator[str]) -> Region:
    nodes: list[Node] = []
    for node in region.nodes:
        # Inner loops first: a value that leaves one may leave the outer loop too.
        loop = replace(node, regions=tuple(_hoist(body, instances, ids) for body in node.regions))
        if isinstance(loop.operation, SharedLoop):
            hoisted, loop = _split(loop, instances, ids)
            nodes.extend(hoisted)
        nodes.append(loop)
    return replace(region, nodes=tuple(nodes))


def _split(loop: Node, instances: Mapping[str, Instance], ids: Iterator[str]) -> tuple[list[Node], Node]:
    """Returns the nodes that leave a loop, and the loop without them."""
    layout, body = loop_layout(loop), loop.regions[0]
    captured = body.inputs[layout.inner_captured :]
    # The outer ids of the values that do not change, by their ids in the body.
    outer_ids = dict(zip((value.id for value in captured), loop.inputs[layout.outer_captured :], strict=True))
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
        outer_ids[node.id] = outside.id
    left = {node.id: node for node in body.nodes if node.id in outer_ids and node.id not in literals}
    if not left:
        return [], loop
    # The rest of the body captures only the values that it reads.
    rest = [node for node in body.nodes if node.id not in left]
    read = {*body.results, *(source for node in rest for source in node.inputs)}
    needed = [node for node in left.values() if node.id in read]
    names = {node.id: next(ids) for node in needed}
    inputs = tuple(Input(names[node.id], node.type, node.name) for node in needed)
    smaller_body = Region(
        (*body.inputs, *inputs), tuple(rename_inputs(node, names) for node in rest), rename(body.results, names)
    )
    outer_inputs = (*loop.inputs, *(outer_ids[node.id] for node in needed))
    return hoisted, replace(loop, inputs=outer_inputs, regions=(smaller_body,))


def _is_deterministic(node: Node, instances: Mapping[str, Instance]) -> bool:
    if isinstance(node.operation, Call):
        return is_deterministic(node, node.operation, instances)
    return isinstance(node.operation, Arithmetic | Join | Part)
