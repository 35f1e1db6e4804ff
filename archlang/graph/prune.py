"""Removes what no result needs: values, captured values, states of loops, and the instances that only they used.

What is removed has no weights and adds no ponder: docs/semantics.md. `inline` must have run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress

import networkx as nx

from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.inline import inline
from archlang.graph.loop_layout import is_idle, loop_layout
from archlang.graph.operations import Halting, Join, Loop, Part, Scan
from archlang.graph.rename import rename, rename_inputs
from archlang.types.statics import instances_in


def normalize(graph: Graph) -> Graph:
    """The graph that a model's weights, ponder and results are those of: without `apply`, and with what is needed."""
    return prune(inline(graph))


def prune(graph: Graph) -> Graph:
    """The graph, once `inline` has run, with what its results need."""
    return remove_dead(remove_idle(graph))


def remove_idle(graph: Graph) -> Graph:
    """The graph without loops that take no step: their states keep their values."""
    return replace(graph, region=_skip_idle(graph.region))


def _skip_idle(region: Region) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    results: dict[str, tuple[str, ...]] = {}  # of the loops that are gone
    for original in region.nodes:
        node = rename_inputs(original, names)
        if is_idle(node):
            results[node.id] = node.inputs[: len(node.types)]
            if len(node.types) == 1:
                names[node.id] = node.inputs[0]
        elif isinstance(node.operation, Part) and node.inputs[0] in results:
            names[node.id] = results[node.inputs[0]][node.operation.index]
        else:
            nodes.append(replace(node, regions=tuple(map(_skip_idle, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def remove_dead(graph: Graph) -> Graph:
    """The graph with only what its results need."""
    region = _prune(graph.region)
    needed = _needed_instances(region, graph.instances)
    return Graph(graph.name, region, {path: one for path, one in graph.instances.items() if path in needed})


def _prune(region: Region) -> Region:
    """The region with only what its results need; its inputs all stay."""
    wanted = set(region.results)
    parts: dict[str, set[int]] = {}  # which results of a node with several are wanted
    kept: list[Node] = []
    moved: dict[str, list[int]] = {}  # which results a shrunken loop or join still has
    for node in reversed(region.nodes):
        if isinstance(node.operation, Part):
            if node.id in wanted:
                parts.setdefault(node.inputs[0], set()).add(node.operation.index)
                kept.append(node)
            continue
        used = parts.get(node.id, set()) if len(node.types) != 1 else {0} if node.id in wanted else set()
        if not used:
            continue
        if isinstance(node.operation, Loop):
            node, moved[node.id] = _shrink(node, node.operation, used)
        elif isinstance(node.operation, Join):
            node, moved[node.id] = _narrow(node, node.operation, used)
        wanted.update(node.inputs)
        kept.append(node)
    return _renumber(replace(region, nodes=tuple(reversed(kept))), moved)


def _shrink(loop: Node, operation: Loop, used: set[int]) -> tuple[Node, list[int]]:
    """A loop with only what its used results need, and which of its results those are."""
    shape, body = loop_layout(loop), loop.regions[0]
    emits = isinstance(operation, Scan) and shape.states in used
    live = {index for index in used if index < shape.states}
    if isinstance(operation, Halting):
        live.add(operation.state)
    while True:  # a live state may read another, which is live then
        results = [index for index in range(len(body.results)) if index in live or (emits and index == shape.states)]
        pruned = _prune(replace(body, results=tuple(body.results[index] for index in results)))
        read = {*pruned.results, *(source for node in pruned.nodes for source in node.inputs)}
        found = {index for index in range(shape.states) if body.inputs[shape.inner + index].id in read}
        if found <= live:
            break
        live |= found
    captured = [value.id in read for value in body.inputs[shape.inner_captured :]]
    states = [index in live for index in range(shape.states)]
    mixture = [value.id in read for value in body.inputs[shape.states : shape.inner_captured]]
    outside, inside = [*states, *captured], [*states, *mixture, *captured]
    match operation:
        case Scan():
            operation = Scan(len(live), emits)
            outside = inside = [True, *states, *captured]
        case Halting(state=halted):
            operation = replace(operation, state=sorted(live).index(halted), mixture=any(mixture))
    shrunken = replace(
        loop,
        operation=operation,
        inputs=tuple(compress(loop.inputs, outside)),
        types=tuple(loop.types[index] for index in results),
        regions=(replace(pruned, inputs=tuple(compress(body.inputs, inside))),),
    )
    return shrunken, results


def _narrow(join: Node, operation: Join, used: set[int]) -> tuple[Node, list[int]]:
    """A join with only the maps whose products are used, and which those are."""
    results = sorted(used)
    types = tuple(join.types[index] for index in results)
    return replace(join, types=types, operation=Join(tuple(operation.maps[index] for index in results))), results


def _renumber(region: Region, moved: Mapping[str, list[int]]) -> Region:
    """Parts of shrunken loops and joins under their new numbers; the part of one with one result is it itself."""
    nodes: list[Node] = []
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    for original in region.nodes:
        node = rename_inputs(original, names)
        places[node.id] = len(nodes)
        if isinstance(node.operation, Part) and (results := moved.get(node.inputs[0])) is not None:
            loop = nodes[places[node.inputs[0]]]
            if len(results) == 1:
                names[node.id] = loop.id
                nodes[places[loop.id]] = replace(loop, name=loop.name or node.name)
                continue
            node = replace(node, operation=Part(results.index(node.operation.index)))
        nodes.append(node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _needed_instances(region: Region, instances: Mapping[str, Instance]) -> set[str]:
    """The instances that nodes use, and those that these hold."""
    holds: nx.DiGraph[str] = nx.DiGraph()
    holds.add_nodes_from(instances)
    holds.add_edges_from(
        (path, other) for path, one in instances.items() for other in instances_in(one.statics.values())
    )
    used = {node.instance for node in region.walk() if node.instance is not None}
    return used.union(*(nx.descendants(holds, path) for path in used))
