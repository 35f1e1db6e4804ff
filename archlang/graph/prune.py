"""Removes everything that neither a result nor an auxiliary loss needs: values, captured values, states of loops, and
their instances.

The model has no weights and no ponder of removed loops and calls: docs/semantics.md. `inline` must have run."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import compress

from archlang.graph.graph import Graph, Instance, Node, Region, is_idle, loop_layout
from archlang.graph.inline import Expansion, expanded, inline, rename, rename_inputs
from archlang.graph.operations import Experts, Gradient, Halting, Loop, Loss, Part, Repeat, Scan, Stack
from archlang.types.statics import instances_in


def normalize(graph: Graph) -> Graph:
    """Returns the graph that defines a model's weights, ponder and results: inlined and pruned."""
    return prune(inline(graph))


def prune(graph: Graph) -> Graph:
    """Returns the graph without idle loops and without values that its results do not need."""
    return remove_dead(remove_idle(graph))


def remove_idle(graph: Graph) -> Graph:
    """Returns the graph without loops that take no steps: their states keep their values."""

    def states(node: Node) -> Expansion | None:
        return ([], node.inputs[: len(node.types)]) if is_idle(node) else None

    return replace(graph, region=expanded(graph.region, states))


def remove_dead(graph: Graph) -> Graph:
    """Returns the graph with only the values and instances that its results need."""
    region = _needed_part(graph.region)
    paths = _needed_paths(region, graph.instances)
    instances = {path: instance for path, instance in graph.instances.items() if path in paths}
    return Graph(graph.name, region, instances, word=graph.word)


def _needed_part(region: Region) -> Region:
    needed = set(region.results)
    parts: dict[str, set[int]] = {}  # the needed results of nodes with several
    reversed_nodes: list[Node] = []
    remaining: dict[str, list[int]] = {}  # the results that a shrunken loop still has
    # Backwards, each node comes after all that read it.
    for node in reversed(region.nodes):
        if isinstance(node.operation, Part):
            if node.id in needed:
                parts.setdefault(node.inputs[0], set()).add(node.operation.index)
                reversed_nodes.append(node)
            continue
        used = parts.get(node.id, set()) if len(node.types) != 1 else {0} if node.id in needed else set()
        if not used and not has_loss(node):
            continue
        if isinstance(node.operation, Loop):
            node, remaining[node.id] = _shrink(node, node.operation, used)
        needed.update(node.inputs)
        reversed_nodes.append(node)
    return _renumber(replace(region, nodes=tuple(reversed(reversed_nodes))), remaining)


def has_loss(node: Node) -> bool:
    """Whether a node is an auxiliary loss, or a loop with one in it."""
    inside = (inner.operation for region in node.regions for inner in region.walk())
    return any(isinstance(operation, Loss) for operation in (node.operation, *inside))


def without_losses(graph: Graph) -> Graph:
    """Returns the graph without auxiliary losses and drawn numbers of steps, which matter in training only, and without
    what only they need. `inline` must have run."""
    return remove_dead(replace(graph, region=_without_losses(graph.region)))


def _counted(node: Node) -> Node:
    """A loop with drawn steps as one with a known number."""
    return replace(node, operation=replace(node.operation, drawn="")) if isinstance(node.operation, Repeat) else node


def _without_losses(region: Region) -> Region:
    nodes = [node for node in region.nodes if not isinstance(node.operation, Loss)]
    return replace(region, nodes=tuple(_counted(node).with_bodies(_without_losses) for node in nodes))


def _shrink(loop: Node, operation: Loop, used: set[int]) -> tuple[Node, list[int]]:
    """Returns a loop with only the values that its used results need, and the indices of its remaining results."""
    layout, body = loop_layout(loop), loop.regions[0]
    emits = layout.states in used
    live = {index for index in used if index < layout.states}
    # The halting block reads this state in every step, also if nothing else does.
    if isinstance(operation, Halting):
        live.add(operation.state)
    while True:  # a live state may read another state, which makes that live
        results = [index for index in range(len(body.results)) if index in live or (emits and index == layout.states)]
        pruned = _needed_part(replace(body, results=tuple(body.results[index] for index in results)))
        read = {*pruned.results, *(source for node in pruned.nodes for source in node.inputs)}
        read_states = {index for index in range(layout.states) if body.inputs[layout.inner + index].id in read}
        if read_states <= live:
            break
        live |= read_states
    captured = [value.id in read for value in body.inputs[layout.inner_captured :]]
    states = [index in live for index in range(layout.states)]
    mixture = [value.id in read for value in body.inputs[layout.states : layout.inner_captured]]
    outside, inside = [*states, *captured], [*states, *mixture, *captured]
    match operation:
        case Repeat() | Stack():
            operation = replace(operation, emits=emits)
        case Scan():
            operation = replace(operation, carried=len(live), emits=emits)
            outside, inside = [True, *states, *captured], [*[True] * layout.inner, *states, *captured]
        case Experts():
            outside, inside = [True, True, *captured], [True, *captured]
        case Gradient():
            outside, inside = [True, *captured], [True, *captured]
        case Halting(state=halted):
            operation = replace(operation, state=sorted(live).index(halted), mixture=any(mixture), emits=emits)
    shrunken = replace(
        loop,
        operation=operation,
        inputs=tuple(compress(loop.inputs, outside)),
        types=tuple(loop.types[index] for index in results),
        regions=(replace(pruned, inputs=tuple(compress(body.inputs, inside))),),
    )
    return shrunken, results


def _renumber(region: Region, remaining: Mapping[str, list[int]]) -> Region:
    """Gives parts of shrunken loops their new indices."""
    nodes: list[Node] = []
    names: dict[str, str] = {}
    places: dict[str, int] = {}
    for original in region.nodes:
        node = rename_inputs(original, names)
        places[node.id] = len(nodes)
        if isinstance(node.operation, Part) and (results := remaining.get(node.inputs[0])) is not None:
            loop = nodes[places[node.inputs[0]]]
            if len(results) == 1:  # the loop itself is this value now
                names[node.id] = loop.id
                nodes[places[loop.id]] = replace(loop, name=loop.name or node.name)
                continue
            node = replace(node, operation=Part(results.index(node.operation.index)))
        nodes.append(node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _needed_paths(region: Region, instances: Mapping[str, Instance]) -> set[str]:
    needed = {node.instance for node in region.walk() if node.instance is not None}
    pending = list(needed)
    while pending:
        statics = set(instances_in(instances[pending.pop()].statics.values())) - needed
        needed |= statics
        pending += statics
    return needed
