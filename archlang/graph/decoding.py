"""What decoding keeps of the positions before the next one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from archlang.graph.causality import horizons
from archlang.graph.graph import Graph, Node, Region
from archlang.graph.growth import growths
from archlang.graph.loop_layout import loop_layout, takes_positions
from archlang.graph.operations import Call, Halting, Scan, step_limit
from archlang.graph.prune import normalize
from archlang.types import Dim, Type
from archlang.types.causality import NOTHING, Horizon, Manner

# What a position of a result reads so is at this position.
_OF_THE_POSITION = {Manner.POINTWISE, Manner.LENGTH}
# The others are in the row of the position, or in rows before it, of a map.
_OF_OTHER_ROWS = {Manner.TRANSPOSED, Manner.MIRRORED, Manner.FULL}


def decoding_state(graph: Graph) -> Dim | None:
    """Returns how many numbers of one sample decoding keeps from token to token, as a polynomial in the lengths: keys,
    values, and states of recurrences. None if no input of tokens can be decoded, since the result sees its future.

    Windows and chunks count as full, and halting loops as long as they may be."""
    graph = normalize(graph)
    for origin in reversed(graph.region.inputs):
        if origin.type.name == "tokens":
            found = horizons(graph, origin.name)
            if not found[graph.region.results[0]].sees_future:
                return _Decoding(graph, found).region(graph.region)
    return None


@dataclass
class _Decoding:
    graph: Graph
    horizons: Mapping[str, Horizon]
    chunks: dict[str, Dim] = field(default_factory=dict)
    """the sizes of the chunks around a region, by the names of their lengths"""

    def region(self, region: Region) -> Dim:
        types = region.types()
        kept: dict[str, Dim] = {}  # by the value that is kept, or by the node that keeps it
        for node in region.nodes:
            if any(self.grows(source) for source in node.inputs):
                kept |= self.node(node, types)
        return Dim.total(kept.values())

    def grows(self, value: str) -> bool:
        return self.horizons.get(value, NOTHING) != NOTHING

    def node(self, node: Node, types: Mapping[str, Type]) -> dict[str, Dim]:
        match node.operation:
            case Call(instance=path):
                return self.call(node, path, types)
            case Scan():
                return {node.id: self.scan(node, types)}
        if not node.regions:
            return {}
        (body,) = node.regions
        inner = self.region(body)
        if isinstance(node.operation, Halting):  # which positions run a step, later ones may decide
            inner += Dim.total(self.size(body.types()[result]) for result in body.results)
        steps = Dim.of(step_limit(node.operation) or 1)
        arguments = [self.size(types[source]) for source in node.inputs if isinstance(node.operation, Halting)]
        return {node.id: inner * steps + Dim.total(arguments)}

    def call(self, node: Node, path: str, types: Mapping[str, Type]) -> dict[str, Dim]:
        instance = self.graph.instances[path]
        lengths = {
            name: length
            for axes, source in zip(instance.axes, node.inputs, strict=False)
            for name, length in zip(axes, types[source].lengths, strict=False)
            if name
        }
        if instance.costs.state is not None:
            return {node.id: instance.costs.state.substitute(lengths).substitute(self.chunks)}
        kept = {}
        for source, manner in zip(node.inputs, map(Manner, instance.reads), strict=False):
            is_map = types[source].name == "map"
            rows = {*_OF_OTHER_ROWS, *([Manner.CAUSAL] if node.type.name == "map" else [])}
            if self.grows(source) and (manner in rows if is_map else manner not in _OF_THE_POSITION):
                kept[source] = self.size(types[source])
        return kept

    def scan(self, node: Node, types: Mapping[str, Type]) -> Dim:
        assert isinstance(node.operation, Scan)
        (body,), layout = node.regions, loop_layout(node)
        grown: dict[str, Dim] = {}
        for index, growth in growths(node).items():
            chunk = None if takes_positions(node) else body.inputs[0].type.lengths[0]
            state = body.inputs[layout.inner + index].type.lengths[0]
            first = types[node.inputs[layout.outer + index]].lengths[0]
            grown |= {name: first + growth.total(types[node.inputs[0]].lengths[0], chunk) for name in state.names}
        states = [self.size(types[source]) for source in node.inputs[layout.outer : layout.outer + layout.states]]
        if takes_positions(node):
            return Dim.total(states)
        part = types[node.inputs[0]].part
        name = body.inputs[0].type.lengths[0].symbol
        self.chunks |= {} if part is None or name is None else {name: part}
        return Dim.total([*states, self.region(body)])

    def size(self, kind: Type) -> Dim:
        sizes = kind.lengths if kind.name == "tokens" or kind.feature is None else (*kind.lengths, kind.feature)
        return reduce(Dim.__mul__, sizes, Dim.of(1)).substitute(self.chunks)
