"""The values of a graph that its result needs, by the rule of docs/semantics.md."""

from collections.abc import Iterator
from dataclasses import dataclass

import networkx

from archlang.graph.graph import Graph, Node, Region, is_idle, loop_layout
from archlang.graph.operations import Apply, Experts, Gradient, Halting, Loss, Part, Scan

# The id of a value, a result of a loop or an applied block by its index, or, with None, that a loop runs at all.
Need = str | tuple[str, int | None]
MODEL: Need = ("", None)


@dataclass(frozen=True)
class Needs:
    """The ids of needed values, and for each loop the indices of its needed results; states come first."""

    values: set[str]
    results: dict[str, set[int]]

    def halting(self, region: Region) -> list[Halting]:
        """Returns the needed halting loops with steps in a region, at any depth."""
        return [
            node.operation
            for node in region.walk()
            if isinstance(node.operation, Halting) and node.operation.limit and self.results.get(node.id)
        ]

    def losses(self, region: Region) -> set[str]:
        """Returns the names of the auxiliary losses in a region, at any depth."""
        own = {node.operation.name for node in region.nodes if isinstance(node.operation, Loss)}
        inner = (body for node in region.nodes if not is_idle(node) for body in node.regions)
        return own.union(*map(self.losses, inner))


def needs_of(graph: Graph) -> Needs:
    """Returns the values that the results and the auxiliary losses of a graph need."""
    edges = [*_edges(graph.region), *((MODEL, result) for result in graph.region.results)]
    needed = networkx.descendants(networkx.DiGraph(edges), MODEL)
    results: dict[str, set[int]] = {}
    for node, index in (need for need in needed if isinstance(need, tuple)):
        results.setdefault(node, set()).update([] if index is None else [index])
    return Needs({need for need in needed if isinstance(need, str)}, results)


def _edges(region: Region, around: tuple[Node, ...] = ()) -> Iterator[tuple[Need, Need]]:
    """Yields what needs what else in a region; a loss needs the loops around it."""
    for node in region.nodes:
        if isinstance(node.operation, Loss):
            yield MODEL, node.inputs[0]
            yield from ((MODEL, (loop.id, None)) for loop in around)
        elif isinstance(node.operation, Part):
            yield node.id, (node.inputs[0], node.operation.index)
        elif not node.regions:
            yield from ((node.id, source) for source in node.inputs)
        else:
            yield node.id, (node.id, 0)
            if is_idle(node):
                yield from (((node.id, index), node.inputs[index]) for index in range(len(node.types)))
            else:
                yield from _edges_of_body(node)
                yield from _edges(node.regions[0], (*around, node))


def _edges_of_body(node: Node) -> Iterator[tuple[Need, Need]]:
    """Yields what the results of a loop or an applied block, and the inputs of its body, need."""
    (body,) = node.regions
    yield from (((node.id, index), result) for index, result in enumerate(body.results))
    if isinstance(node.operation, Apply):
        yield from zip((value.id for value in body.inputs), node.inputs, strict=True)
        return
    yield from (((node.id, index), (node.id, None)) for index in range(len(body.results)))
    if isinstance(node.operation, Halting):
        yield (node.id, None), (node.id, node.operation.state)
    if isinstance(node.operation, Scan | Experts | Gradient):
        yield from (((node.id, None), source) for source in node.inputs[: loop_layout(node).outer])
    layout = loop_layout(node)
    for index in range(layout.states):
        yield (node.id, index), node.inputs[layout.outer + index]
        yield body.inputs[layout.inner + index].id, (node.id, index)
    yield from ((value.id, node.inputs[0]) for value in body.inputs[: layout.inner])
    captured = (value.id for value in body.inputs[layout.inner_captured :])
    yield from zip(captured, node.inputs[layout.outer_captured :], strict=True)
