"""Does arithmetic with literals, and drops what changes nothing: `x * 1`, `x + 0`, `-(-x)`.

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
    for original in region.nodes:
        node = rename_inputs(original, names)
        value = _value(node, numbers)
        stand_in = _unchanged(node, numbers, negated)
        if value is not None:
            numbers[node.id] = value
            node = replace(node, op="number", inputs=(), attributes={"value": value})
        elif stand_in is not None:
            names[node.id] = stand_in
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


def _unchanged(node: Node, numbers: Mapping[str, Number], negated: Mapping[str, str]) -> str | None:
    """The value that a node leaves as it is, if it does nothing."""
    if node.op == "negate":
        return negated.get(node.inputs[0])
    if node.op not in _NEUTRAL:
        return None
    left, right = node.inputs
    neutral = _NEUTRAL[node.op]
    if numbers.get(right) == neutral:
        return left
    if node.op in _COMMUTES and numbers.get(left) == neutral:
        return right
    return None
