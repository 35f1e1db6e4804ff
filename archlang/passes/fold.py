"""Does arithmetic with literals, and drops what changes nothing: `x * 1`, `x + 0`, `-(-x)`.

Nothing has to run before."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.numbers import divide
from archlang.graph.rename import rename, rename_inputs

_COMPUTE: Mapping[str, Callable[..., float]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": divide,
    "negate": operator.neg,
}
# The literal that changes nothing on the right; on the left too where the operation commutes.
_NEUTRAL = {"add": 0, "subtract": 0, "multiply": 1, "divide": 1}
_COMMUTES = ("add", "multiply")


def fold(graph: Graph) -> Graph:
    """The graph with literal arithmetic done."""
    return replace(graph, region=_fold(graph.region))


def _fold(region: Region) -> Region:
    nodes: list[Node] = []
    names: dict[str, str] = {}
    numbers: dict[str, float] = {}
    negated: dict[str, str] = {}
    for original in region.nodes:
        node = rename_inputs(original, names)
        value = _value(node, numbers)
        same = _unchanged(node, numbers, negated)
        if value is not None:
            numbers[node.id] = value
            if node.op != "number":
                node = replace(node, op="number", inputs=(), attributes={"value": value})
        elif same is not None:
            names[node.id] = same
            continue
        elif node.op == "negate":
            negated[node.id] = node.inputs[0]
        nodes.append(replace(node, regions=tuple(map(_fold, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _value(node: Node, numbers: Mapping[str, float]) -> float | None:
    """The number that a node is, if it is one."""
    if node.op == "number":
        value = node.attributes["value"]
        assert isinstance(value, int | float)
        return float(value)
    if node.op not in _COMPUTE or any(source not in numbers for source in node.inputs):
        return None
    return _COMPUTE[node.op](*(numbers[source] for source in node.inputs))


def _unchanged(node: Node, numbers: Mapping[str, float], negated: Mapping[str, str]) -> str | None:
    """The value that the result of a node is, if it does nothing."""
    if node.op == "negate" and node.inputs[0] in negated:
        return negated[node.inputs[0]]
    if node.op in _NEUTRAL:
        left, right = node.inputs
        if numbers.get(right) == _NEUTRAL[node.op]:
            return left
        if node.op in _COMMUTES and numbers.get(left) == _NEUTRAL[node.op]:
            return right
    return None
