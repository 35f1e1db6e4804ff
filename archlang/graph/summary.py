"""The costs of an architecture: its parameters, and the FLOPs of a sample."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from itertools import product
from math import prod

from archlang.graph.facts import POSITIONS
from archlang.graph.graph import Graph, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import chunk_count, growths
from archlang.graph.operations import (
    Apply,
    Arithmetic,
    Call,
    Experts,
    Gradient,
    Halting,
    OwnWeights,
    Repeat,
    Scan,
    step_limit,
)
from archlang.graph.prune import normalize
from archlang.types import Dim, Type

# The gradients of a matrix product are two matrix products.
FORWARD_AND_BACKWARD = 3
# How often the costs of a body are evaluated, if they differ from part to part of a scan.
_MOST_EVALUATIONS = 64


@dataclass(frozen=True)
class Summary:
    """The costs of a model, where every loop runs to its limit; only what results and auxiliary losses need counts.

    `unique` counts each parameter once, `executed` as often as it is used. The other costs are those of one sample with
    `length` positions. `values` counts the numbers in the results of all steps of all blocks, and `activations` about
    as many as training keeps until backward: the results, and what the signatures of blocks state besides. `idle_flops`
    are those of experts whose weights are 0, which do not run and count nowhere else. `unknown`,
    `uncounted` and `unmeasured` are the blocks whose parameters, FLOPs or activations are unknown; these count as 0.
    `nodes` has the cost of all executions of each node that is computed, by its id."""

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
    idle_flops: int = 0
    nodes: Mapping[str, Cost] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Cost:
    """The cost of one execution of a node or region, for one sample."""

    parameters: int = 0
    flops: int = 0
    values: int = 0
    activations: int = 0
    idle_flops: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(operator.add, astuple(self), astuple(other)))

    def times(self, count: int) -> Cost:
        return Cost(*(count * value for value in astuple(self)))


def summarize(graph: Graph, length: int, depth: int | None = None) -> Summary:
    """Returns the costs of a graph for a sample with `length` positions in every input. Loops with shared weights run
    to their limits, or `depth` steps if that is less."""
    counter = _Counter(graph, depth)
    cost = counter.region(
        graph.region, {name: length for value in graph.region.inputs for name in names_of_lengths(value.type)}
    )
    unique = _weights(graph, graph.region, counter.nodes)
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
        cost.idle_flops,
        counter.nodes,
    )


def weights(graph: Graph, node: Node, computed: Collection[str]) -> int:
    """Returns the number of parameters that one execution of a node uses, each counted once however often it is used;
    those of blocks with unknown parameters count as 0. `computed` are the ids of the nodes that count."""
    return _weights(graph, Region((), (node,), ()), computed)


def weights_by_path(graph: Graph) -> Iterator[tuple[str, int]]:
    """Yields the path of each instance in a module, such as "stack.0.mix", with the number of its parameters."""
    graph = normalize(graph)
    copies = {each.path: each.count for node in graph.region.walk() if isinstance(each := node.operation, OwnWeights)}
    for path, instance in graph.instances.items():
        stacks = [path[: place - 1] for place, sign in enumerate(path) if sign == "*"]
        for steps in product(*(range(copies[stack]) for stack in stacks)):
            yield path.replace("*", "{}").format(*steps), instance.costs.parameters or 0


def _weights(graph: Graph, region: Region, computed: Collection[str]) -> int:
    """The parameters of the instances that a region uses, with a copy for each step of the stacks in it that own them;
    a module of `let` outside of a stack is one, though all steps call it."""
    nodes = [node for node in region.walk() if node.id in computed]
    stacks = {each.path: each.count for node in nodes if isinstance(each := node.operation, OwnWeights)}
    used = {node.instance for node in nodes if node.instance is not None}
    return sum(
        (graph.instances[path].costs.parameters or 0)
        * prod(count for stack, count in stacks.items() if path.startswith(f"{stack}.*."))
        for path in used
    )


class _Counter:
    """Counts the costs of a graph. `executions` is how often the region being counted runs for a sample."""

    def __init__(self, graph: Graph, depth: int | None) -> None:
        self.graph = graph
        self.depth = depth
        self.computed = {node.id for node in normalize(graph).region.walk()}
        self.nodes: dict[str, Cost] = {}
        self.executions = 1
        self.evaluations = _MOST_EVALUATIONS
        self.unknown: set[str] = set()
        self.uncounted: set[str] = set()
        self.unmeasured: set[str] = set()

    def region(self, region: Region, outer_lengths: Mapping[str, int]) -> Cost:
        lengths = dict(outer_lengths)
        types = {value.id: value.type for value in region.inputs}
        types |= {node.id: node.types[0] for node in region.nodes if node.types}
        nodes = {node.id: node for node in region.nodes}
        total = Cost()
        for node in region.nodes:
            if node.id not in self.computed and not isinstance(node.operation, Apply):
                continue
            inputs = [types[source] for source in node.inputs]
            cost = self.node(node, inputs, nodes, lengths)
            self.nodes[node.id] = self.nodes.get(node.id, Cost()) + cost.times(self.executions)
            total += cost
        return total

    def node(self, node: Node, inputs: list[Type], nodes: Mapping[str, Node], lengths: dict[str, int]) -> Cost:
        """Returns the cost of a node. Adds the number of chunks of a scan to the lengths."""
        cost = Cost()
        limit = step_limit(node.operation)
        times = 1 if limit is None else limit
        if isinstance(node.operation, Repeat | Halting) and self.depth is not None:
            times = min(times, self.depth)
        if isinstance(node.operation, Call | Arithmetic):
            count = 0 if node.type.name == "number" else _size(node.type.count, lengths)
            cost = Cost(values=count, activations=count)
        match node.operation:
            case Call(instance=path):
                cost += self.call(path, inputs, lengths)
            case Halting(instance=path, state=state):
                cost += self.call(path, [inputs[state]], lengths).times(times)
        if not node.regions:
            return cost
        (body,) = node.regions
        if isinstance(node.operation, Experts):
            count, nonzero = node.operation.count, self.nonzero(node.inputs[1], nodes)
            running = count if nonzero is None else min(count, nonzero)
            return cost + self.experts(node, count, running, inputs[0], lengths)
        if not isinstance(node.operation, Scan):
            before = self.executions
            self.executions *= times
            inner = self.region(body, lengths)
            self.executions = before
            gradient_steps = getattr(node.operation, "truncated", None)
            if isinstance(node.operation, Gradient):
                # Training keeps the operations of backward, too.
                flops, activations = (FORWARD_AND_BACKWARD * each for each in (inner.flops, inner.activations))
                return cost + replace(inner, flops=flops, activations=activations)
            if getattr(node.operation, "settled", False):
                gradient_steps = 1
            # The other steps keep nothing until backward.
            activations = inner.activations * (times if gradient_steps is None else min(times, gradient_steps))
            return cost + replace(inner.times(times), activations=activations)
        positions = _size(inputs[0].dims[0], lengths)
        if takes_positions(node):
            size, name = 1, ""
        else:
            size = self.chunk(nodes.get(node.inputs[0]), inputs[0].part, positions)
            name = next(iter(body.inputs[0].type.dims[0].names), "")
        full, rest = divmod(positions, size)
        parts = -(-positions // size)
        if name:
            lengths |= dict.fromkeys(chunk_count(Dim.of(name)).names, parts)
        found = _lengths_of_part(node, inputs, lengths, size)
        # Each part alone, unless they are many or cost the same.
        group = max(1, -(-full // (self.evaluations if found else 1)))
        starts = range(0, full, group) or (0,)
        executions, evaluations = self.executions, self.evaluations
        self.evaluations = max(1, self.evaluations // len(starts))
        for start in starts:
            count = min(group, full - start)
            own = {found_name: of_part(start + max(0, count - 1) // 2) for found_name, of_part in found.items()}
            self.executions = executions * count
            cost += self.region(body, {**lengths, **own, name: size}).times(count)
        self.executions, self.evaluations = executions, evaluations
        last = {found_name: of_part(full) for found_name, of_part in found.items()}
        return cost + (self.region(body, {**lengths, **last, name: rest}) if rest else Cost())

    def nonzero(self, value: str, nodes: Mapping[str, Node]) -> int | None:
        """Returns how many features of a value may differ from 0; None if the signatures of blocks do not say."""
        node = nodes.get(value)
        match node and node.operation:
            case Call(instance=path):
                return self.graph.instances[path].costs.nonzero
            case Arithmetic.MULTIPLY:
                assert node is not None
                factors = [nodes[source] for source in node.inputs if source in nodes]
                counts = [
                    self.nonzero(factor.id, nodes) for factor in factors if factor.type.feature == node.type.feature
                ]
                return min((count for count in counts if count is not None), default=None)
        return None

    def experts(self, node: Node, count: int, running: int, values: Type, lengths: Mapping[str, int]) -> Cost:
        """The costs of `count` experts, of which `running` have a weight other than 0 at each position."""
        (body,) = node.regions
        rows = prod(_size(dim, lengths) for dim in values.lengths)
        before = self.executions
        self.executions *= rows * running
        inner = self.region(body, lengths)
        self.executions = before
        idle = Cost(idle_flops=inner.flops + inner.idle_flops).times(rows * (count - running))
        return inner.times(rows * running) + idle

    def chunk(self, cut: Node | None, part: Dim | None, positions: int) -> int:
        """The number of positions of a chunk, where `cut` splits a sequence of `positions`, and `part` is the largest
        size that the type of the chunks allows."""
        size = (part and part.constant) or 0
        even = self.graph.instances[cut.instance].even if cut is not None and cut.instance is not None else None
        if even is not None:
            parts = even or (-(-positions // size) if size else 1)
            size = -(-positions // max(1, parts))
        return max(1, size or positions)

    def call(self, path: str, arguments: list[Type], lengths: Mapping[str, int]) -> Cost:
        instance = self.graph.instances[path]
        sizes = {POSITIONS: prod(_size(dim, lengths) for dim in arguments[0].lengths) if arguments else 1}
        sizes |= {name: _size(dim, lengths) for name, dim in instance.lengths_of(arguments).items()}
        costs = instance.costs
        for cost, blocks in (
            (costs.parameters, self.unknown), (costs.flops, self.uncounted), (costs.activations, self.unmeasured),
        ):  # fmt: skip
            if cost is None:
                blocks.add(instance.block)
        return Cost(
            parameters=costs.parameters or 0,
            flops=0 if costs.flops is None else _size(costs.flops, sizes),
            activations=0 if costs.activations is None else _size(costs.activations, sizes),
        )


def _lengths_of_part(
    scan: Node, inputs: list[Type], lengths: Mapping[str, int], size: int
) -> Mapping[str, Callable[[int], int]]:
    """Returns the lengths that a part of a scan finds: those of growing states, and of the positions before it. Each is
    a function of the number of parts before, which have `size` positions."""
    assert isinstance(scan.operation, Scan)
    (body,), layout, most = scan.regions, loop_layout(scan), scan.operation.before
    found: dict[str, Callable[[int], int]] = {}
    if most is not None:
        (name,) = body.inputs[1].type.dims[0].names
        found[name] = lambda parts: min(most, parts * size) if most else parts * size
    for index, growth in growths(scan).items():
        (name,) = body.inputs[layout.inner + index].type.dims[0].names
        first = _size(inputs[layout.outer + index].dims[0], lengths)
        each = (growth.each.constant or 0) + growth.per_position * size
        found[name] = partial(lambda first, each, parts: first + each * parts, first, each)
    return found


def names_of_lengths(kind: Type) -> set[str]:
    return {name for dim in kind.lengths for name in dim.names}


def _size(dim: Dim, lengths: Mapping[str, int]) -> int:
    # A length that no input has, such as that of a concatenation, is estimated as the longest.
    fallback = max(lengths.values(), default=1)
    numbers = {name: Dim.of(lengths.get(name, fallback)) for name in dim.names}
    size = dim.substitute(numbers).constant
    assert size is not None, "a name is left"
    return size
