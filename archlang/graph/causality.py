"""What each position of a model's result depends on, and by which path it sees the future."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from archlang.diagnostics.effort import spend
from archlang.graph.graph import Graph, Instance, Node, Region
from archlang.types.causality import MODES, Dependence

NONE, PAST, POINTWISE, CAUSAL, FULL = (
    Dependence.NONE,
    Dependence.PAST,
    Dependence.POINTWISE,
    Dependence.CAUSAL,
    Dependence.FULL,
)


@dataclass(frozen=True)
class Leak:
    """How a result comes to depend on every position: the node that reads the future first, and the nodes that carry
    it to the result, in order."""

    culprit: Node
    carriers: tuple[Node, ...]


def dependence(graph: Graph, origin: str) -> Dependence:
    """What position i of the model's result may depend on in the input called `origin`."""
    return _Analysis(graph.instances).result(graph, origin)


def find_leak(graph: Graph, origin: str) -> Leak | None:
    """The path by which the result sees the future of an input; None if it does not."""
    analysis = _Analysis(graph.instances)
    if analysis.result(graph, origin) is not FULL:
        return None
    path = analysis.trace(graph.region, graph.region.results[0])
    return Leak(path[0], tuple(path[1:])) if path else None


class _Analysis:
    """Dependences of every value on one input. `known` keeps the last (and so the largest) one found for each id, as
    ids are unique in a graph; loops run until nothing changes."""

    def __init__(self, instances: Mapping[str, Instance]) -> None:
        self._instances = instances
        self.known: dict[str, Dependence] = {}

    def result(self, graph: Graph, origin: str) -> Dependence:
        inputs = [POINTWISE if value.name == origin else NONE for value in graph.region.inputs]
        return self.region(graph.region, inputs)[0]

    def region(self, region: Region, inputs: Sequence[Dependence]) -> list[Dependence]:
        spend(1 + len(region.nodes) // 2)  # a node takes half the time of a step
        for value, given in zip(region.inputs, inputs, strict=True):
            self.known[value.id] = given
        parts: dict[str, list[Dependence]] = {}
        for node in region.nodes:
            reads = [self.known[source] for source in node.inputs]
            match node.op:
                case "part":
                    index = node.attributes["index"]
                    assert isinstance(index, int)
                    results = [parts[node.inputs[0]][index]]
                case "join":
                    results = reads * len(node.types)
                case "apply":
                    results = self.region(node.regions[0], reads)
                case "repeat" | "stack":
                    results = self._loop(node, reads)
                case "halting":
                    results = self._halting(node, reads)
                case "scan":
                    results = self._scan(node, reads)
                case _:
                    results = [self._plain(node, reads)]
            parts[node.id] = results
            self.known[node.id] = results[0] if len(results) == 1 else _join(results)
        return [self.known[result] for result in region.results]

    def _plain(self, node: Node, reads: Sequence[Dependence]) -> Dependence:
        if node.op != "call":
            return _join(reads)
        instance = self._instances[str(node.attributes["instance"])]
        modes = [MODES[mode] for mode in instance.reads] or [FULL] * len(node.arguments)
        # A product of an argument, which a call may be given too, depends on what the argument does.
        own = reads[: len(node.arguments)]
        found = _join([value.through(mode) for value, mode in zip(own, modes, strict=True)])
        # Without positions in the result there is no place that could be earlier than the input's.
        positions = bool(node.types[0].lengths)
        return found if positions or found in (NONE, PAST) else FULL

    def _fixed(
        self, states: list[Dependence], step: Callable[[list[Dependence]], list[Dependence]]
    ) -> list[Dependence]:
        while True:
            after = [old.join(new) for old, new in zip(states, step(states), strict=True)]
            if after == states:
                return states
            states = after

    def _loop(self, node: Node, reads: Sequence[Dependence]) -> list[Dependence]:
        (body,) = node.regions
        count = len(body.results)
        captured = list(reads[count:])
        return self._fixed(list(reads[:count]), lambda states: self.region(body, [*states, *captured]))

    def _halting(self, node: Node, reads: Sequence[Dependence]) -> list[Dependence]:
        (body,) = node.regions
        count = len(body.results)
        captured = list(reads[count:])
        halted = node.attributes["state"]
        assert isinstance(halted, int)
        instance = self._instances[str(node.attributes["instance"])]
        mode = MODES[instance.reads[0]] if instance.reads else FULL

        def step(states: list[Dependence]) -> list[Dependence]:
            mixture = [states[halted]] if node.attributes["mixture"] else []
            moved = self.region(body, [*states, *mixture, *captured])
            # Whether a state moves is decided by probabilities that read the halting state before and after.
            decided = states[halted].join(moved[halted]).through(mode)
            return [value.join(decided) for value in moved]

        return self._fixed(list(reads[:count]), step)

    def _scan(self, node: Node, reads: Sequence[Dependence]) -> list[Dependence]:
        (body,) = node.regions
        carried = node.attributes["carried"]
        assert isinstance(carried, int)
        over, initial = reads[0], reads[1 : 1 + carried]
        captured = [value if value in (NONE, PAST) else FULL for value in reads[1 + carried :]]
        # Inside, dependences are on the chunk at hand; what earlier chunks left lies in the past.
        states = [PAST if value in (NONE, PAST) else FULL for value in initial]
        inside = self.region(body, [POINTWISE, *states, *captured])
        outside = [PAST if PAST is _join(reads) else (NONE if _join(reads) is NONE else FULL)] * carried
        if node.attributes["emits"]:
            emitted = inside[-1]
            result = over.through(CAUSAL if emitted is PAST else emitted)
            if emitted is FULL and over is NONE:
                result = _join([*initial, *reads[1 + carried :]])
            outside.append(result)
        return outside

    # The path of a leak

    def trace(self, region: Region, result: str) -> list[Node]:
        """From the node that first reads the future to the result: nodes whose value depends on every position."""
        nodes = {node.id: node for node in region.nodes}
        path: list[Node] = []
        current = result
        while current in nodes:
            node = nodes[current]
            path.append(node)
            guilty = [source for source in node.inputs if self.known[source] is FULL]
            if node.regions:
                inner = self._inside(node, guilty)
                if inner:
                    return [*inner, *reversed(path)]
            if not guilty:
                break
            current = guilty[0]
        return list(reversed(path))

    def _inside(self, node: Node, guilty: Sequence[str]) -> list[Node]:
        """The part of a path that lies in a loop's body or a block; empty if the future comes in from outside."""
        (body,) = node.regions
        if guilty and node.op != "apply":
            states = len(body.results)
            first = 1 if node.op == "scan" else 0
            if any(source in node.inputs[:first] or source in node.inputs[states + first :] for source in guilty):
                return []
        elif guilty:
            return []
        for result in body.results:
            if self.known.get(result) is FULL:
                return self._start(body)
        return []

    def _start(self, body: Region) -> list[Node]:
        """The node of a body that turns a causal value into one that depends on everything, and what it stands in;
        empty if there is none, as in a loop that looks ahead only in order to halt."""
        for node in body.nodes:
            turned = node.op == "call" and self.known[node.id] is FULL
            if turned and self._plain(node, [Dependence.CAUSAL] * len(node.inputs)) is FULL:
                return [node]
            if node.regions and self.known[node.id] is FULL:
                found = self._inside(node, ())
                if found:
                    return [*found, node]
        return []


def _join(values: Sequence[Dependence]) -> Dependence:
    total = NONE
    for value in values:
        total = total.join(value)
    return total
