"""Moves out of a loop what is the same in each of its steps: arithmetic, and calls of blocks that draw no numbers, on
values from outside. `inline` must have run.

    repeat 20 { h <- norm(h + attention[8](h, norm(m))) }

becomes

    k = norm(m)
    repeat 20 { h <- norm(h + attention[8](h, k)) }

So do the products that `join` has taken out of a block: keys and values of a memory are computed once. A stack has
other weights in each step, and keeps what it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.loop_layout import loop_layout
from archlang.graph.operations import Arithmetic, Call, Join, Literal, Part, SharedLoop
from archlang.graph.rename import rename, rename_inputs
from archlang.passes.determinism import is_deterministic
from archlang.passes.fresh import fresh_numbers


def leave_loops(graph: Graph) -> Graph:
    """The graph in which loops compute only what changes."""
    return replace(graph, region=_leave(graph.region, graph.instances, fresh_numbers(graph)))


def _leave(region: Region, instances: Mapping[str, Instance], fresh: count[int]) -> Region:
    nodes: list[Node] = []
    for node in region.nodes:
        # Inner loops first: what leaves them may leave the outer one as well.
        inner = replace(node, regions=tuple(_leave(one, instances, fresh) for one in node.regions))
        if isinstance(inner.operation, SharedLoop):
            moved, inner = _split(inner, instances, fresh)
            nodes.extend(moved)
        nodes.append(inner)
    return replace(region, nodes=tuple(nodes))


def _split(loop: Node, instances: Mapping[str, Instance], fresh: count[int]) -> tuple[list[Node], Node]:
    """What leaves a loop, and the rest of it."""
    shape, body = loop_layout(loop), loop.regions[0]
    captured = body.inputs[shape.inner_captured :]
    # The ids outside of what does not change, by those in the body.
    outside = dict(zip((value.id for value in captured), loop.inputs[shape.outer_captured :], strict=True))
    numbers = {node.id: node for node in body.nodes if isinstance(node.operation, Literal)}
    moved: list[Node] = []
    for node in body.nodes:
        fixed = all(source in outside or source in numbers for source in node.inputs)
        if not fixed or not any(source in outside for source in node.inputs) or not _is_steady(node, instances):
            continue
        for source in node.inputs:
            if source not in outside:  # a literal: it is written down once more
                literal = replace(numbers[source], id=f"%{next(fresh)}")
                moved.append(literal)
                outside[source] = literal.id
        made = replace(rename_inputs(node, outside), id=f"%{next(fresh)}")
        moved.append(made)
        outside[node.id] = made.id
    gone = {node.id: node for node in body.nodes if node.id in outside and node.id not in numbers}
    if not gone:
        return [], loop
    # Only what the rest of the body reads comes in again.
    rest = [node for node in body.nodes if node.id not in gone]
    read = {*body.results, *(source for node in rest for source in node.inputs)}
    needed = [node for node in gone.values() if node.id in read]
    names = {node.id: f"%{next(fresh)}" for node in needed}
    inputs = tuple(Input(names[node.id], node.type, node.name) for node in needed)
    smaller = Region(
        (*body.inputs, *inputs), tuple(rename_inputs(node, names) for node in rest), rename(body.results, names)
    )
    given = tuple(outside[node.id] for node in needed)
    return moved, replace(loop, inputs=(*loop.inputs, *given), regions=(smaller,))


def _is_steady(node: Node, instances: Mapping[str, Instance]) -> bool:
    """Whether a node gives the same each time that it is given the same."""
    if isinstance(node.operation, Call):
        return is_deterministic(node, node.operation, instances)
    return isinstance(node.operation, Arithmetic | Join | Part)
