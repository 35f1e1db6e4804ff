"""What an architecture costs: its parameters, and the FLOPs of a sample of some length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from archlang.graph.facts import POSITIONS
from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Arithmetic, Call, Halting, Repeat, Scan, Stack, step_limit
from archlang.graph.prune import normalize
from archlang.types import Axis, Dim, Type


@dataclass(frozen=True)
class Summary:
    """What an architecture costs, where every loop runs to its limit.

    `unique` counts each weight once, `executed` as often as it is used. The other costs are of one sample. `values` are
    the numbers that all steps of all blocks and arithmetic return, `activations` about as many as training keeps until
    backward: these, and what the signatures of blocks state besides. `unknown`, `uncounted` and `unmeasured` are the
    blocks whose parameters, FLOPs or activations are unknown; each of these counts as 0."""

    model: str
    length: int
    unique: int
    executed: int
    flops: int
    unknown: tuple[str, ...]
    uncounted: tuple[str, ...]
    values: int
    activations: int
    unmeasured: tuple[str, ...]
    nodes: Mapping[str, Cost] = field(default_factory=dict, repr=False)
    """by the id of a node, what it costs in all of its calls"""


@dataclass(frozen=True)
class Cost:
    """Of a region at one walk through it."""

    parameters: int = 0
    flops: int = 0
    values: int = 0
    activations: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.parameters + other.parameters,
            self.flops + other.flops,
            self.values + other.values,
            self.activations + other.activations,
        )

    def times(self, count: int) -> Cost:
        return Cost(self.parameters * count, self.flops * count, self.values * count, self.activations * count)


def summarize(graph: Graph, length: int, depth: int | None = None) -> Summary:
    """The costs of a graph for samples that have `length` positions in every input. Loops with shared weights run to
    their limits, or `depth` steps where that is less."""
    counter = _Counter(graph, depth)
    cost = counter.region(graph.region, {name: length for one in graph.region.inputs for name in _names(one.type)})
    needed = normalize(graph).instances
    unique = sum(copies * counter.weights[path] for path, copies in counter.copies.items() if path in needed)
    return Summary(
        graph.name,
        length,
        unique,
        cost.parameters,
        cost.flops,
        tuple(sorted(counter.unknown)),
        tuple(sorted(counter.uncounted)),
        cost.values,
        cost.activations,
        tuple(sorted(counter.unmeasured)),
        counter.nodes,
    )


class _Counter:
    def __init__(self, graph: Graph, depth: int | None) -> None:
        self.graph = graph
        self.depth = depth
        self.weights: dict[str, int] = {}
        self.nodes: dict[str, Cost] = {}
        self.around = 1  # how often what is being counted runs
        self.unknown: set[str] = set()
        self.uncounted: set[str] = set()
        self.unmeasured: set[str] = set()
        self.copies: dict[str, int] = {}
        self.stacked = 1

    def region(self, region: Region, lengths: Mapping[str, int]) -> Cost:
        types = {value.id: value.type for value in region.inputs}
        types |= {node.id: node.types[0] for node in region.nodes}
        made = {node.id: node for node in region.nodes}
        total = Cost()
        for node in region.nodes:
            given = [types[source] for source in node.inputs]
            cost = self.node(node, given, made, lengths)
            self.nodes[node.id] = self.nodes.get(node.id, Cost()) + cost.times(self.around)
            total += cost
        return total

    def node(self, node: Node, given: list[Type], made: Mapping[str, Node], lengths: Mapping[str, int]) -> Cost:
        cost = Cost()
        limit = step_limit(node.operation)
        times = 1 if limit is None else limit
        if isinstance(node.operation, Repeat | Halting) and self.depth is not None:
            times = min(times, self.depth)
        if isinstance(node.operation, Call | Arithmetic):
            count = _count(node.type, lengths)
            cost = Cost(values=count, activations=count)
        match node.operation:
            case Call(instance=path):
                cost += self.call(path, given, lengths)
            case Halting(instance=path, state=state):
                cost += self.call(path, [given[state]], lengths).times(times)
        if not node.regions:
            return cost
        (body,) = node.regions
        if not isinstance(node.operation, Scan):
            before = self.stacked, self.around
            self.stacked *= times if isinstance(node.operation, Stack) else 1
            self.around *= times
            inner = self.region(body, lengths)
            self.stacked, self.around = before
            return cost + inner.times(times)
        whole = _size(given[0].dims[0], lengths)
        size = self.chunk(made.get(node.inputs[0]), given[0].part, whole)
        name = next(iter(body.inputs[0].type.dims[0].names), "")
        full, rest = divmod(whole, size)
        once = self.around
        self.around = once * full
        cost += self.region(body, {**lengths, name: size}).times(full)
        self.around = once
        return cost + (self.region(body, {**lengths, name: rest}) if rest else Cost())

    def chunk(self, cut: Node | None, part: Dim | None, whole: int) -> int:
        """How many positions a chunk has, where `part` is the largest size that its type allows."""
        size = (part and part.constant) or 0
        even = self.graph.instances[cut.instance].even if cut is not None and cut.instance is not None else None
        if even is not None:
            parts = even or (-(-whole // size) if size else 1)
            size = -(-whole // max(1, parts))
        return max(1, size or whole)

    def call(self, path: str, given: list[Type], lengths: Mapping[str, int]) -> Cost:
        instance = self.graph.instances[path]
        self.copies[instance.path] = max(self.copies.get(instance.path, 1), self.stacked)
        sizes = {POSITIONS: prod(_size(dim, lengths) for dim in given[0].lengths) if given else 1}
        for axes, kind in zip(instance.axes, given, strict=False):
            sizes |= {name: _size(dim, lengths) for name, dim in zip(axes, kind.lengths, strict=False) if name}
        costs = instance.costs
        for cost, blocks in (
            (costs.parameters, self.unknown), (costs.flops, self.uncounted), (costs.activations, self.unmeasured),
        ):  # fmt: skip
            if cost is None:
                blocks.add(instance.block)
        self.weights[instance.path] = costs.parameters or 0
        return Cost(
            parameters=costs.parameters or 0,
            flops=0 if costs.flops is None else _size(costs.flops, sizes),
            activations=0 if costs.activations is None else _size(costs.activations, sizes),
        )


def _count(kind: Type, lengths: Mapping[str, int]) -> int:
    """How many numbers a value of a type has."""
    if kind.name == "number":
        return 0
    dims = zip(kind.dims, kind.axes, strict=True)
    return prod(_size(dim, lengths) for dim, axis in dims if axis is not Axis.PART)


def _names(kind: Type) -> set[str]:
    return {name for dim in kind.lengths for name in dim.names}


def _size(dim: Dim, lengths: Mapping[str, int]) -> int:
    # A length that is not an input's own, such as that of a concatenation, is taken for the longest.
    fallback = max(lengths.values(), default=1)
    known = {name: Dim.of(lengths.get(name, fallback)) for name in dim.names}
    size = dim.substitute(known).constant
    assert size is not None, "a name is left"
    return size
