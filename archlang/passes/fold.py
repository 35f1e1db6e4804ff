"""Does arithmetic with literals, and drops what changes nothing: `x * 1`, `x + 0`, `-(-x)`.

Nothing has to run before."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.numbers import divide
from archlang.graph.operations import Arithmetic, Literal
from archlang.graph.rename import rename, rename_inputs

_COMPUTE: Mapping[Arithmetic, Callable[..., float]] = {
    Arithmetic.ADD: operator.add,
    Arithmetic.SUBTRACT: operator.sub,
    Arithmetic.MULTIPLY: operator.mul,
    Arithmetic.DIVIDE: divide,
    Arithmetic.NEGATE: operator.neg,
}
# The literal that changes nothing on the right; on the left too where the operation commutes.
_NEUTRAL: Mapping[Arithmetic, float] = {
    Arithmetic.ADD: 0,
    Arithmetic.SUBTRACT: 0,
    Arithmetic.MULTIPLY: 1,
    Arithmetic.DIVIDE: 1,
}


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
            if not isinstance(node.operation, Literal):
                node = replace(node, operation=Literal(value), inputs=())
        elif same is not None:
            names[node.id] = same
            continue
        elif node.operation is Arithmetic.NEGATE:
            negated[node.id] = node.inputs[0]
        nodes.append(replace(node, regions=tuple(map(_fold, node.regions))) if node.regions else node)
    return Region(region.inputs, tuple(nodes), rename(region.results, names))


def _value(node: Node, numbers: Mapping[str, float]) -> float | None:
    """The number that a node is, if it is one."""
    match node.operation:
        case Literal(value=value):
            return float(value)
        case Arithmetic() as operation if all(source in numbers for source in node.inputs):
            return _COMPUTE[operation](*(numbers[source] for source in node.inputs))
    return None


def _unchanged(node: Node, numbers: Mapping[str, float], negated: Mapping[str, str]) -> str | None:
    """The value that the result of a node is, if it does nothing."""
    if not isinstance(node.operation, Arithmetic):
        return None
    if node.operation is Arithmetic.NEGATE:
        return negated.get(node.inputs[0])
    left, right = node.inputs
    if numbers.get(right) == _NEUTRAL[node.operation]:
        return left
    if node.operation.commutes and numbers.get(left) == _NEUTRAL[node.operation]:
        return right
    return None
