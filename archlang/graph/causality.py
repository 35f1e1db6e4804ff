"""The horizon of each value, and the path by which a result sees the future: the rules of docs/semantics.md as code."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import ceil

from archlang.errors.effort import spend
from archlang.graph.graph import Graph, Instance, Node, Region, has_halting_positions, is_idle, loop_layout
from archlang.graph.operations import Apply, Call, Experts, Gradient, Halting, Part, Repeat, Scan, Stack
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
    manner_of,
    within,
)


class Reason(Enum):
    """Why a node sees the future while its inputs do not."""

    READS_ALL = "reads every position"
    READS_ROWS = "reads whole rows of a map, which have a column for every position"
    READS_FROM_THE_END = "reads from the last position"
    READS_GROUPS = "makes one position of several, the last of which is later"
    READS_FROM_OUTSIDE = "reads a sequence from outside the scan, which has later positions"
    HALTS_BY_ALL = "halts by all positions together"
    MOVES_FOR_OTHERS = "updates a state while any position is running"
    DIFFERENTIATES_ALL = "adds up the losses of all positions, which may read other positions of the value"
    ENDS_WITH_THE_LAST = "returns the state after the last step"


@dataclass(frozen=True)
class Leak:
    """Why a result sees the future: the node that first looks ahead, its reason, the nodes after it on the path to the
    result, and the highest rate of a horizon on this path."""

    culprit: Node
    reason: Reason
    carriers: tuple[Node, ...]
    rate: int


def horizon(graph: Graph, origin: str) -> Horizon:
    """Returns the horizon of the model's result in the input called `origin`."""
    return _HorizonAnalysis(graph.instances).result(graph, origin)


def horizons(graph: Graph, origin: str, with_length: bool = True) -> Mapping[str, Horizon]:
    """Returns the horizon of each value, by its id, in the input called `origin` and in its length, also in loops. Its
    length does not count without `with_length`.

    If a value does not see the future, its position i stays the same when the input grows. The horizon of a loop covers
    all of its results. Values in a loop without steps are missing."""
    analysis = _HorizonAnalysis(graph.instances, with_length)
    analysis.result(graph, origin)
    return analysis.horizons


def find_leak(graph: Graph, origin: str) -> Leak | None:
    """Returns the path by which the result sees the future of the input called `origin`; None if it does not."""
    analysis = _HorizonAnalysis(graph.instances)
    if not analysis.result(graph, origin).sees_future:
        return None
    result = graph.region.results[0]
    # A paired map has no cause; as a result, its rows have later columns.
    maps = (_Cause(0, node) for node in graph.region.nodes if node.id == result)
    culprit, *carriers = _path(analysis.causes.get(result) or next(maps))
    rate = ceil(max(analysis.horizons[node.id].rate for node in (culprit, *carriers)))
    return Leak(culprit, analysis.reason(culprit), tuple(carriers), rate)


@dataclass(frozen=True)
class _Cause:
    """How a value came to see the future, when the analysis first found it.

    Args:
        rank: How far the value sees: the smaller, the further.
        node: The node that made the value; None for an input of a body.
        source: The cause of the value by which it sees the future; None if the node is the first that looks ahead.
        body_of: The node whose body the value is an input of, if `source` is the cause of a value outside."""

    rank: int
    node: Node | None
    source: "_Cause | None" = None
    body_of: Node | None = None


def _path(cause: _Cause) -> list[Node]:
    """Returns the nodes from the first that looks ahead to the value of a cause. The nodes of a body are left out if
    the body does not look ahead itself."""
    path: dict[str, Node] = {}  # by id
    step: _Cause | None = cause
    while step is not None:
        if step.body_of is not None:
            while next(reversed(path)) != step.body_of.id:
                path.popitem()
        elif step.node is not None:
            while step.node.id in path:  # found again in an earlier step of a loop
                path.popitem()
            path[step.node.id] = step.node
        step = step.source
    return [*path.values()][::-1]


class _HorizonAnalysis:
    """Computes the horizon of every value in one input. `horizons` holds the last, and so the largest, of each id: ids
    are unique in a graph, and the analysis repeats a loop until its horizons are stable. `causes` has the values that
    see the future. `depth` is the number of scans around a region. With `with_length`, the length of a sequence counts
    like its data."""

    def __init__(self, instances: Mapping[str, Instance], with_length: bool = False) -> None:
        self._instances = instances
        self._with_length = with_length
        self.horizons: dict[str, Horizon] = {}
        self.causes: dict[str, _Cause] = {}
        self._causes_of_results: dict[tuple[str, int], _Cause] = {}  # by loop and index
        self._single: set[int] = set()  # the numbers of the scans around that take one position at a time
        self._types: dict[str, Type] = {}
        self._states: dict[str, list[Horizon]] = {}  # of each loop, after its last step so far
        self._results: dict[str, tuple[list[Horizon], list[Horizon]]] = {}  # of each node, with its arguments
        self._last: dict[int, tuple[object, list[Horizon]]] = {}  # what each region was analysed with last, its results

    def result(self, graph: Graph, origin: str) -> Horizon:
        inputs = [POINTWISE if value.name == origin else NOTHING for value in graph.region.inputs]
        return self._region(graph.region, inputs, 0, [None] * len(inputs))[0]

    def _looks_ahead(self, node: Node, of_map: Horizon) -> bool:
        """Whether a call of causal sequences and of such maps has a result that sees the future."""
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
        if isinstance(node.operation, Gradient):
            return Reason.DIFFERENTIATES_ALL
        if isinstance(node.operation, Scan):
            return Reason.ENDS_WITH_THE_LAST
        if not isinstance(node.operation, Call) or not self._looks_ahead(node, PAIRED):
            return Reason.READS_FROM_OUTSIDE
        if not self._looks_ahead(node, CAUSAL):
            return Reason.READS_ROWS
        reads = self._instances[node.operation.instance].reads
        if any(read.startswith("grouped") for read in reads):
            return Reason.READS_GROUPS
        return Reason.READS_ALL if "full" in reads or not reads else Reason.READS_FROM_THE_END

    def _region(
        self, region: Region, inputs: Sequence[Horizon], depth: int, causes: Sequence[_Cause | None]
    ) -> list[Horizon]:
        """Returns the horizons of the results. `causes` are those of the inputs; None for an input that does not see
        the future outside of the region."""
        key = [*inputs], [cause is None for cause in causes]
        if (last := self._last.get(id(region))) is not None and last[0] == key:
            return last[1]
        spend(1 + len(region.nodes) // 2)  # a node takes half the time of a step
        for value, value_horizon, cause in zip(region.inputs, inputs, causes, strict=True):
            self.horizons[value.id] = value_horizon
            rank = self._rank(value_horizon, depth)
            if rank is not None and cause is not None and _is_news(self.causes.get(value.id), rank):
                self.causes[value.id] = replace(cause, rank=rank)
        self._types.update((value.id, value.type) for value in region.inputs)
        for node in region.nodes:
            arguments = [self.horizons[source] for source in node.inputs]
            # The horizon of a loop covers all of its results, so that of one part may change without it.
            is_part = isinstance(node.operation, Part)
            if not (node.regions or is_part) and self._results.get(node.id, (None,))[0] == arguments:
                continue
            match node.operation:
                case Part(index=index):
                    results = [self._results[node.inputs[0]][1][index]]
                case Call():
                    results = [self._call(node, node.operation, arguments, depth)]
                case Apply():
                    results = self._apply(node, arguments, depth)
                case Repeat() | Stack():
                    results = self._repeat(node, arguments, depth)
                case Halting():
                    results = self._halting(node, node.operation, arguments, depth)
                case Experts():
                    results = [self._experts(node, arguments, depth)]
                case Gradient():
                    results = [self._gradient(node, arguments, depth)]
                case Scan():
                    results = self._scan(node, node.operation, arguments, depth)
                case _:
                    results = [join_all(arguments, depth)]
            self._results[node.id] = arguments, results
            if len(node.types) == 1:
                self._types[node.id] = node.types[0]
            self.horizons[node.id] = join_all(results, depth)
            self._keep_causes(node, results, depth)
        self._last[id(region)] = key, [self.horizons[result] for result in region.results]
        return self._last[id(region)][1]

    def _apply(self, node: Node, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        (body,) = node.regions
        return self._region(body, arguments, depth, self._captured_causes(node))

    # Causes

    def _rank(self, value: Horizon, depth: int) -> int | None:
        """How far a value of a region inside `depth` scans sees: the smaller, the further. None if it does not see the
        future."""
        if value.rate > 1:
            return 2 * depth + 2
        # What reads whole rows of a paired map sees the future, not the map.
        if not value.sees_future or value.reach is Reach.PAIRED:
            return None
        if value.reach is Reach.MIRRORED:
            return 2 * depth + 1
        # The end of a chunk of one position is that position.
        return None if value.scan in self._single else 2 * value.scan

    def _keep_causes(self, node: Node, results: Sequence[Horizon], depth: int) -> None:
        """Keeps the causes of those results of a node that see further than was known."""
        for index, result in enumerate(results):
            rank = self._rank(result, depth)
            if rank is None or not _is_news(self._causes_of_results.get((node.id, index)), rank):
                continue
            if isinstance(node.operation, Part):
                cause = self._causes_of_results[node.inputs[0], node.operation.index]
            else:
                source = self._source_of_result(node, index) if node.regions else self._source(node.inputs, rank)
                cause = _Cause(rank, node, source)
            self._causes_of_results[node.id, index] = cause
            if index == 0:
                self.causes[node.id] = cause

    def _source(self, inputs: Sequence[str], rank: int) -> _Cause | None:
        """The cause of the argument by which a node sees as far as it does; None if the node itself looks ahead."""
        causes = [self.causes[source] for source in inputs if source in self.causes]
        return min(
            (cause for cause in causes if cause.rank // 2 <= rank // 2), key=lambda cause: cause.rank, default=None
        )

    def _source_of_result(self, node: Node, index: int) -> _Cause | None:
        """The cause of the value by which a result of a loop or block sees the future; None if the loop itself looks
        ahead, as its result depends on when other positions halt, or on the last chunk."""
        (body,) = node.regions
        if is_idle(node):
            return self.causes.get(node.inputs[index])
        sources = [body.results[index]]
        if isinstance(node.operation, Halting):
            sources.append(body.results[node.operation.state])
        if isinstance(node.operation, Experts):
            sources += [node.inputs[1], node.inputs[0]]  # the weights, and the positions themselves
        elif not isinstance(node.operation, Apply) and index < loop_layout(node).states:
            sources.append(node.inputs[loop_layout(node).outer + index])
        return next((self.causes[source] for source in sources if source in self.causes), None)

    def _causes_of_states(self, node: Node, causes: Sequence[_Cause | None]) -> list[_Cause | None]:
        """The causes of the states of a loop after a step; `causes` are those before."""
        moved = [self.causes.get(result) for result in node.regions[0].results[: len(causes)]]
        return [
            after if after is not None and _is_news(before, after.rank) else before
            for before, after in zip(causes, moved, strict=True)
        ]

    def _captured_causes(self, node: Node, start: int = 0, stop: int | None = None) -> list[_Cause | None]:
        """The causes of values outside of the body of a node, as those of inputs of the body."""
        causes = [self.causes.get(source) for source in node.inputs[start:stop]]
        return [cause and _Cause(cause.rank, None, cause, body_of=node) for cause in causes]

    def _call(self, node: Node, call: Call, arguments: Sequence[Horizon], depth: int) -> Horizon:
        reads = self._instances[call.instance].reads or ("full",) * len(node.arguments)
        result = node.types[0]
        parts = []
        # A product of an argument has the horizon of the argument.
        for source, argument, written in zip(node.inputs, arguments, reads, strict=False):
            manner, count = manner_of(written)
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
            parts.append(argument.read(manner, depth, count))
        total = join_all(parts, depth)
        is_map = result.name == "map"
        if self._with_length and is_map and result.lengths[1].constant is None and total != NOTHING:
            total = total.join(PAIRED, depth)  # a column exists only if the input is long enough
        if total.reach is Reach.PAIRED and not is_map:
            total = total.read(Manner.ROW, depth)
        return total if result.lengths else total.read(Manner.FULL, depth)

    def _repeat(self, node: Node, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        count = loop_layout(node).states
        if is_idle(node):
            return list(arguments[:count])
        states, captured = list(arguments[:count]), arguments[count:]
        causes = self._captured_causes(node)

        def step(states: Sequence[Horizon]) -> list[Horizon]:
            results = self._region(node.regions[0], [*states, *captured], depth, causes)
            causes[:count] = self._causes_of_states(node, causes[:count])
            return results

        states, results = self._fixed(node, states, depth, step)
        return [*states, *results[count:]] if count < len(node.types) else states

    def _halting(self, node: Node, halting: Halting, arguments: Sequence[Horizon], depth: int) -> list[Horizon]:
        count, halted = loop_layout(node).states, halting.state
        if is_idle(node):
            return list(arguments[:count])
        captured = arguments[count:]
        instance = self._instances[halting.instance]
        # A block that returns one probability for the sample halts all positions together.
        manner = Manner(instance.reads[0]) if instance.reads and instance.per_position else Manner.FULL
        (body,) = node.regions
        inner = [*range(count), *[halted] * halting.mixture]  # the states that the body reads
        causes = self._captured_causes(node)

        def step(states: list[Horizon]) -> list[Horizon]:
            # A state may see the future because of when other positions halt.
            decides = self.causes.get(body.results[halted]) or _Cause(0, node)
            causes_of_states = [causes[index] or decides for index in inner]
            moved = self._region(
                body, [*(states[index] for index in inner), *captured], depth, [*causes_of_states, *causes[count:]]
            )
            causes[:count] = self._causes_of_states(node, causes[:count])
            decided = states[halted].join(moved[halted], depth).read(manner, depth)
            anywhere = decided.read(Manner.FULL, depth)
            return [
                state.join(decided if has_halting_positions(node, index) else anywhere, depth)
                for index, state in enumerate(moved)
            ]

        states, results = self._fixed(node, list(arguments[:count]), depth, step)
        return [*states, *results[count:]] if halting.emits else states

    def _experts(self, node: Node, arguments: Sequence[Horizon], depth: int) -> Horizon:
        values, weights, *captured = arguments
        (body,) = node.regions
        causes = [*self._captured_causes(node, 0, 1), *self._captured_causes(node, 2)]
        if not node.type.lengths:
            return self._region(body, [values, *captured], depth, causes)[0].join(weights, depth)
        # A position is a chunk of one position, and the body carries nothing from one to the next.
        self._single.add(depth + 1)
        position = values.cut(depth).read(Manner.FULL, depth + 1)
        inputs = [position, *(value.enter(depth) for value in captured)]
        (result,) = self._region(body, inputs, depth + 1, causes)
        self._single.discard(depth + 1)
        # A value of the position alone depends on what the position depends on.
        own = values if result == within(depth + 1) else result.joined(depth, True).scaled(values.rate)
        return own.join(weights, depth)

    def _gradient(self, node: Node, arguments: Sequence[Horizon], depth: int) -> Horizon:
        """A derivative depends on what its loss depends on. Position i of it is that of the losses of all positions,
        unless the loss of each position reads the value at this position only."""
        (body,) = node.regions
        (loss,) = self._region(body, arguments, depth, self._captured_causes(node))
        others = [NOTHING] * (len(arguments) - 1)
        (reads,) = _HorizonAnalysis(self._instances)._region(body, [POINTWISE, *others], depth, [None] * len(arguments))
        return loss if reads in (POINTWISE, NOTHING) else loss.read(Manner.FULL, depth)

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

        outer = self._captured_causes(node)
        causes = [*outer[:1] * len(part_inputs), *outer[1:]]
        places = slice(len(part_inputs), len(part_inputs) + carried)

        results: list[Horizon] = []

        def step(states: list[Horizon]) -> list[Horizon]:
            results[:] = self._region(body, [*part_inputs, *states, *captured], depth + 1, causes)
            causes[places] = self._causes_of_states(node, causes[places])
            return [result.next_chunk(depth) for result in results[:carried]]

        states, _ = self._fixed(node, [state.enter(depth) for state in initial], depth + 1, step)
        self._single.discard(depth + 1)
        # A state after the last step also depends on how many parts there are.
        by_number = within(depth) if self._with_length and parts != NOTHING else NOTHING
        outside = [
            before if result_id == inside.id else state.join(result, depth + 1).last(depth).join(by_number, depth)
            for before, inside, state, result, result_id in zip(
                initial, body.inputs[len(part_inputs) :], states, results, body.results, strict=False
            )
        ]
        return [*outside, *(result.joined(depth, one_position).scaled(parts.rate) for result in results[carried:])]

    def _fixed(
        self, node: Node, states: list[Horizon], depth: int, step: Callable[[list[Horizon]], list[Horizon]]
    ) -> tuple[list[Horizon], list[Horizon]]:
        """Returns the least horizons that cover the states before a loop and after each of its steps, and the results
        of the last step, which begin with its states."""
        # What a loop around repeats only grows, so the loop continues from there: else the steps of nested loops
        # multiply.
        before = self._states.get(node.id, states)
        states = [new.join(old, depth) for new, old in zip(states, before, strict=True)]
        steps = 0  # that make nothing but rates grow
        while True:
            results = step(states)
            after = [old.join(new, depth) for old, new in zip(states, results, strict=False)]
            if after == states:
                self._states[node.id] = states
                return states, results
            steps += [state.reach for state in after] == [state.reach for state in states]
            # In more such steps than there are states, a rate depends on itself, and grows in each.
            is_endless = steps > len(states)
            states = [
                within(depth) if is_endless and new.rate > old.rate else new
                for old, new in zip(states, after, strict=True)
            ]


def _is_news(previous: _Cause | None, rank: int) -> bool:
    """Whether a value of this rank sees further than by its previous cause."""
    return previous is None or rank < previous.rank
