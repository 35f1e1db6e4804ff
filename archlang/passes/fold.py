"""Does arithmetic with literals, and drops what changes nothing: `x * 1`, `x + 0`, `-(-x)`, a loop of no steps.

Nothing has to run before."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.passes.rename import rename, rename_inputs

Number = int | float

_COMPUTE: Mapping[str, Callable[..., Number]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
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
    numbers: dict[str, Number] = {}
    negated: dict[str, str] = {}
    idle: dict[str, tuple[str, ...]] = {}  # what does nothing, with the values that are its results
    for original in region.nodes:
        node = rename_inputs(original, names)
        value = _value(node, numbers)
        results = _unchanged(node, numbers, negated, idle)
        if value is not None:
            numbers[node.id] = value
            node = replace(node, op="number", inputs=(), attributes={"value": value})
        elif results is not None:
            idle[node.id] = results
            if len(results) == 1:
                names[node.id] = results[0]
            continue
        elif node.op == "negate":
            negated[node.id] = node.inputs[0]
        nodes.append(replace(node, regions=tuple(map(_fold, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _value(node: Node, numbers: Mapping[str, Number]) -> Number | None:
    """The number that a node is, if it is one."""
    if node.op == "number":
        value = node.attributes["value"]
        assert isinstance(value, int | float)
        return value
    if node.op not in _COMPUTE or any(source not in numbers for source in node.inputs):
        return None
    try:
        return _COMPUTE[node.op](*(numbers[source] for source in node.inputs))
    except ArithmeticError:  # 1 / 0 is for the run to report, at its line
        return None


def _unchanged(
    node: Node, numbers: Mapping[str, Number], negated: Mapping[str, str], idle: Mapping[str, tuple[str, ...]]
) -> tuple[str, ...] | None:
    """The values that the results of a node are, if it does nothing."""
    if node.op == "part" and node.inputs[0] in idle:
        index = node.attributes["index"]
        assert isinstance(index, int)
        return (idle[node.inputs[0]][index],)
    if node.op == "negate" and node.inputs[0] in negated:
        return (negated[node.inputs[0]],)
    if node.op in _NEUTRAL:
        left, right = node.inputs
        if numbers.get(right) == _NEUTRAL[node.op]:
            return (left,)
        if node.op in _COMMUTES and numbers.get(left) == _NEUTRAL[node.op]:
            return (right,)
    if node.attributes.get("count", node.attributes.get("limit")) == 0:
        return node.inputs[: len(node.types)]
    return None
