"""The horizon of each value, and the path by which a result sees the future: the rules of docs/semantics.md as code."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from archlang.diagnostics.effort import spend
from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.graph.loop_layout import has_halting_positions, is_idle, loop_layout
from archlang.graph.operations import Apply, Call, Experts, Halting, Join, Part, Repeat, Scan, Stack
from archlang.types import Type
from archlang.types.causality import (
    CAUSAL,
    MIRRORED,
    NOTHING,
    PAIRED,
    POINTWISE,
    Horizon,
    Manner,
    Reach,
    join_all,
    within,
)


class Reason(Enum):
    """Why a node sees the future while its inputs do not."""

    READS_ALL = "reads every position"
    READS_ROWS = "reads whole rows of a map, which have a column for every position"
    READS_FROM_THE_END = "reads from the last position"
    READS_FROM_OUTSIDE = "reads a sequence from outside the scan, which has later positions"
    HALTS_BY_ALL = "halts by all positions together"
    MOVES_FOR_OTHERS = "updates a state while any position is running"
    ENDS_WITH_THE_LAST = "returns the state after the last step"


@dataclass(frozen=True)
class Leak:
    """Why a result sees the future: the node that first looks ahead, its reason, and the nodes after it on the
    path to the result."""

    culprit: Node
    reason: Reason
    carriers: tuple[Node, ...]


def horizon(graph: Graph, origin: str) -> Horizon:
    """Returns the horizon of the model's result in the input called `origin`."""
    return _Analysis(graph.instances).result(graph, origin)


def horizons(graph: Graph, origin: str) -> Mapping[str, Horizon]:
    """Returns the horizon of each value, by its id, in the input called `origin` and in its length, also in loops.

    If a value does not see the future, its position i stays the same when the input grows. The horizon of a loop covers
    all of its results. Values in a loop without steps are missing."""
    analysis = _Analysis(graph.instances, with_length=True)
    analysis.result(graph, origin)
    return analysis.known


def find_leak(graph: Graph, origin: str) -> Leak | None:
    """Returns the path by which the result sees the future of the input called `origin`; None if it does not."""
    analysis = _Analysis(graph.instances)
    if not analysis.result(graph, origin).sees_future:
        return None
    path, _ = _Trace(analysis).back(graph.region, graph.region.results[0])
    return Leak(path[0], analysis.reason(path[0]), tuple(path[1:]))


class _Analysis:
    """Computes the horizon of every value in one input. `known` holds the last, and so the largest, horizon of each id:
    ids are unique in a graph, and the analysis repeats a loop until its horizons are stable. `ahead` has the ids of
    values that see the future, with the number of the pass that found it first. `depth` is the number of scans around
    a region. With `with_length`, the length of a sequence counts like its data."""

    def __init__(self, instances: Mapping[str, Instance], with_length: bool = False) -> None:
        self._instances = instances
        self._with_length = with_length
        self.known: dict[str, Horizon] = {}
        self.ahead: dict[str, int] = {}
        self._passes = 0
        self._single: set[int] = set()  # the numbers of the scans around that take one position at a time
        self._types: dict[str, Type] = {}

    def result(self, graph: Graph, origin: str) -> Horizon:
        inputs = [POINTWISE if value.name == origin else NOTHING for value in graph.region.inputs]
        return self._region(graph.region, inputs, 0)[0]

    def looks_ahead(self, node: Node) -> bool:
        """Whether a call of causal sequences and of paired maps has a result that sees the future."""
        return self._looks_ahead(node, PAIRED)

    def _looks_ahead(self, node: Node, of_map: Horizon) -> bool:
        if not isinstance(node.operation, Call):
            return False
        arguments = [of_map if self._types[source].name == "map" else CAUSAL for source in node.arguments]
        result = self._call(node, node.operation, arguments, 0)
        return result.sees_future and result != PAIRED

    def reason(self, node: Node) -> Reason:
        """Returns why a node looks ahead."""
        if isinstance(node.operation, Halting):
            instance = self._instances[node.operation.instance]
            separately = instance.per_position and instance.reads[:1] != ("full",)
            return Reason.MOVES_FOR_OTHERS if separately else Reason.HALTS_BY_ALL
        if isinstance(node.operation, Scan):
            return Reason.ENDS_WITH_THE_LAST
        if not isinstance(node.operation, Call) or not self.looks_ahead(node):
            return Reason.READS_FROM_OUTSIDE
        if not self._looks_ahead(node, CAUSAL):
            return Reason.READS_ROWS
        reads = self._instances[node.operation.instance].reads
        return Reason.READS_ALL if "full" in reads or not reads else Reason.READS_FROM_THE_END

    def _region(self, region: Region, inputs: Sequence[Horizon], depth: int) -> list[Horizon]:
        spend(1 + len(region.nodes) // 2)  # a node takes half the time of a step
        self._passes += 1
        for value, value_horizon in zip(region.inputs, inputs, strict=True):
            self._learn(value.id, value_horizon)
        self._types.update((value.id, value.type) for value in region.inputs)
        results_of: dict[str, list[Horizon]] = {}
        for node in region.nodes:
            arguments = [self.known[source] for source in node.inputs]
            match node.operation:
                case Part(index=index):
                    results = [results_of[node.inputs[0]][index]]
                case Join():
                    results = arguments * len(node.types)
                case Call():
                    results = [self._call(node, node.operation, arguments, depth)]
                case Apply():
                    results = self._region(node.regions[0], arguments, depth)
                case Repeat() | Stack():
                    results = self._repeat(node, arguments, depth)
                case Halting():
                    results = self._halting(node, node.operation, arguments, depth)
                case Experts():
                    results = [self._experts(node, arguments, depth)]
                case Scan():
                    results = self._scan(node, node.operation, arguments, depth)
                case _:
                    results = [join_all(arguments, depth)]
            results_of[node.id] = results
            if len(node.types) == 1:
                self._types[node.id] = node.types[0]
            self._learn(node.id, join_all(results, depth))
        return [self.known[result] for result in region.results]

    def _learn(self, identity: str, value: Horizon) -> None:
        self.known[identity] = value
        # The end of a chunk of one position is that position.
        is_of_single = value.reach is Reach.WITHIN and value.scan in self._single
        # What reads whole rows of a paired map sees the future, not the map.
        if value.sees_future and value != PAIRED and not is_of_single:
            self.ahead.setdefault(identity, self._passes)

    def _call(self, node: Node, call: Call, arguments: Sequence[Horizon], depth: int) -> Horizon:
        reads = self._instances[call.instance].reads or ("full",) * len(node.arguments)
        result = node.types[0]
        parts = []
        # A product of an argument has the horizon of the argument.
        for source, argument, written in zip(node.inputs, arguments, reads, strict=False):
            manner = Manner(written)
            if manner is Manner.LENGTH and self._with_length:
                manner = Manner.POINTWISE  # position i exists only in a sequence that is long enough
            # The last position is the first of a mirrored value only if both have the same length.
            mirrors = manner is Manner.MIRRORED or argument == MIRRORED
            if mirrors and manner is not Manner.LENGTH and self._types[source].lengths[:1] != result.lengths[:1]:
                manner = Manner.FULL
            if manner is Manner.TRANSPOSED and result.name != "map":
                manner = Manner.FULL
            if manner is Manner.PREFIX and self._types[source].name != "map":
                manner = Manner.CAUSAL
            parts.append(argument.read(manner, depth))
        total = join_all(parts, depth)
        is_map = result.name == "map"
        if self._with_length and is_map and result.lengths[1].constant is None and total != NOTHING:
            total = total.join(PAIRED, depth)  # a column exists only if the input is long enough
        if total == PAIRED and not is_map:
            total = total.read(Manner.ROW, depth)
        return total if result.lengths else total.read(Manner.FULL, depth)

    def _repeat(self, node: Node, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        count = loop_layout(node).states
        if is_idle(node):
            return list(arguments[:count])
        states, captured = list(arguments[:count]), arguments[count:]

        def step(states: Sequence[Horizon]) -> list[Horizon]:
            return self._region(node.regions[0], [*states, *captured], depth)

        states = _fixed(states, depth, lambda states: step(states)[:count])
        return [*states, *step(states)[count:]] if count < len(node.types) else states

    def _halting(self, node: Node, halting: Halting, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        count, halted = loop_layout(node).states, halting.state
        if is_idle(node):
            return list(arguments[:count])
        captured = arguments[count:]
        instance = self._instances[halting.instance]
        # A block that returns one probability for the sample halts all positions together.
        manner = Manner(instance.reads[0]) if instance.reads and instance.per_position else Manner.FULL

        def step(states: list[Horizon]) -> list[Horizon]:
            mixture = [states[halted]] if halting.mixture else []
            moved = self._region(node.regions[0], [*states, *mixture, *captured], depth)
            decided = states[halted].join(moved[halted], depth).read(manner, depth)
            anywhere = decided.read(Manner.FULL, depth)
            return [
                state.join(decided if has_halting_positions(node, index) else anywhere, depth)
                for index, state in enumerate(moved)
            ]

        states = _fixed(list(arguments[:count]), depth, lambda states: step(states)[:count])
        return [*states, *step(states)[count:]] if halting.emits else states

    def _experts(self, node: Node, arguments: Sequence[Horizon], depth: int) -> Horizon:
        values, weights, *captured = arguments
        (body,) = node.regions
        if not node.type.lengths:
            return self._region(body, [values, *captured], depth)[0].join(weights, depth)
        # A position is a chunk of one position, and the body carries nothing from one to the next.
        self._single.add(depth + 1)
        position = values.cut(depth).read(Manner.FULL, depth + 1)
        (result,) = self._region(body, [position, *(value.enter(depth) for value in captured)], depth + 1)
        self._single.discard(depth + 1)
        # A value of the position alone depends on what the position depends on.
        own = values if result == within(depth + 1) else result.joined(depth, single_positions=True)
        return own.join(weights, depth)

    def _scan(self, node: Node, scan: Scan, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        (body,), carried = node.regions, scan.carried
        parts, *initial = arguments[: 1 + carried]
        captured = [value.enter(depth) for value in arguments[1 + carried :]]
        part = parts.cut(depth)
        kind = self._types[node.inputs[0]]
        if kind.part is None:
            part = part.read(Manner.FULL, depth + 1)  # a vector has no positions
        one_position = kind.part is None or kind.part.constant == 1

        if one_position:
            self._single.add(depth + 1)

        # The positions before a part are those of earlier parts.
        part_inputs = [part] if scan.before is None else [part, parts.cut(depth).next_chunk(depth)]

        def step(states: list[Horizon]) -> list[Horizon]:
            results = self._region(body, [*part_inputs, *states, *captured], depth + 1)
            return [result.next_chunk(depth) for result in results[:carried]]

        states = _fixed([state.enter(depth) for state in initial], depth + 1, step)
        results = self._region(body, [*part_inputs, *states, *captured], depth + 1)
        self._single.discard(depth + 1)
        outside = [
            before if result_id == inside.id else state.join(result, depth + 1).last(depth)
            for before, inside, state, result, result_id in zip(
                initial, body.inputs[len(part_inputs) :], states, results, body.results, strict=False
            )
        ]
        return [*outside, *(result.joined(depth, one_position) for result in results[carried:])]


def _fixed(states: list[Horizon], depth: int, step: Callable[[list[Horizon]], list[Horizon]]) -> list[Horizon]:
    """Returns the least horizons that cover the states before a loop and after each of its steps."""
    while True:
        after = [old.join(new, depth) for old, new in zip(states, step(states), strict=True)]
        if after == states:
            return states
        states = after


@dataclass(frozen=True)
class _Trace:
    """Follows a result that sees the future back to the first node that looks ahead."""

    analysis: _Analysis

    @property
    def known(self) -> Mapping[str, Horizon]:
        return self.analysis.known

    @property
    def ahead(self) -> Mapping[str, int]:
        return self.analysis.ahead

    def back(self, region: Region, value: str, states: Collection[str] = ()) -> tuple[list[Node], int | None]:
        """Returns the nodes from the first that looks ahead to a value that sees the future, and the index of the
        region's input that sees the future already; None if a node of the region is the first. A path through
        `states`, which may be circular, is the last choice."""
        nodes = {node.id: node for node in region.nodes}
        inputs = {source.id: index for index, source in enumerate(region.inputs)}
        path: list[Node] = []
        while value not in inputs:
            node, index = nodes[value], 0
            if isinstance(node.operation, Part):
                index, node = node.operation.index, nodes[node.inputs[0]]
            path.append(node)
            if is_idle(node):
                value = node.inputs[index]
                continue
            if node.regions:
                inner, entrance = self._inside(node, index)
                if entrance is None:
                    return [*inner, *reversed(path)], None
                value = node.inputs[entrance]
                continue
            ahead = [source for source in node.inputs if source in self.ahead]
            if not ahead:
                return list(reversed(path)), None
            # A value that sees the future from the first pass on does so without the states.
            value = min(ahead, key=lambda source: (source in states, self.ahead[source]))
        return list(reversed(path)), inputs[value]

    def _inside(self, node: Node, index: int) -> tuple[list[Node], int | None]:
        """Returns the path inside a loop or block to its result of this index, and the index of the input of `node`
        that sees the future already, or None."""
        (body,) = node.regions
        layout = None if isinstance(node.operation, Apply) else loop_layout(node)
        halted = node.operation.state if isinstance(node.operation, Halting) else None
        states = set() if layout is None else {value.id for value in body.inputs[layout.inner : layout.inner_captured]}
        tried: set[int] = set()
        path: list[Node] = []
        while index not in tried:
            tried.add(index)
            if body.results[index] not in self.ahead:
                if isinstance(node.operation, Experts):
                    # The routing weights, or the positions themselves.
                    return [], next((entrance for entrance in (1, 0) if node.inputs[entrance] in self.ahead), None)
                # The loop itself looks ahead: the result depends on when other positions halt, or on the last chunk.
                if halted is not None and index != halted:
                    index = halted
                    continue
                return [], self._initial(node, index)
            path, source = self.back(body, body.results[index], states)
            if source is None:
                return path, None
            if layout is None:
                return [], source
            if source >= layout.inner_captured:
                outer = source - layout.inner_captured + layout.outer_captured
                # From inside a scan, a value outside that is causal is visible as a whole.
                return ([], outer) if node.inputs[outer] in self.ahead else (path, None)
            if source < layout.inner:
                return [], 0
            # A state, or the mixture of the halting state.
            state = source - layout.inner
            index = halted if halted is not None and state >= layout.states else state
            if (outer_state := self._initial(node, index)) is not None:
                return [], outer_state
            if isinstance(node.operation, Scan) and self.known[node.inputs[layout.outer + index]].is_of_position:
                return path, None  # visible as a whole, as above
        # The states see the future because a node of the body looks ahead in each step.
        first = next((place for place, inner in enumerate(path) if self.analysis.looks_ahead(inner)), len(path))
        return path[first:], None

    def _initial(self, node: Node, index: int) -> int | None:
        """Returns the index of the input of a loop that is the initial value of a state, if that sees the future."""
        layout = loop_layout(node)
        if isinstance(node.operation, Apply) or index >= layout.states:
            return None
        outer = layout.outer + index
        return outer if node.inputs[outer] in self.ahead else None
