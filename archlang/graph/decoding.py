"""What the next token needs of the positions before it."""

from collections.abc import Collection, Hashable, Mapping

from archlang.graph.causality import horizon, horizons
from archlang.graph.graph import Graph, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import chunk_count, growths
from archlang.graph.operations import Call, Halting, Repeat, Scan, step_limit
from archlang.graph.prune import normalize
from archlang.graph.windows import groups_of_maps, window
from archlang.types import Dim, Type
from archlang.types.causality import NOTHING, Horizon, Manner, manner_of

# What a position of a result reads so is at this position.
_OF_THE_POSITION = {Manner.POINTWISE, Manner.LENGTH}
# The others are in the row of the position, or in rows before it, of a map.
_OF_OTHER_ROWS = {Manner.TRANSPOSED, Manner.MIRRORED, Manner.FULL}

# The numbers that are kept, by the value itself, or by what keeps it: nothing is kept twice.
_Sizes = dict[Hashable, Dim]


def decoding_state(graph: Graph) -> Dim | None:
    """Returns how many numbers of one sample the next token needs, as a polynomial in the lengths: keys, values, and
    states of recurrences. None if no input of tokens can be decoded, since the result sees its future.

    Windows and chunks count as full, and halting loops run to their limits."""
    graph = normalize(graph)
    for origin in reversed(graph.region.inputs):
        if origin.type.name == "tokens" and not horizon(graph, origin.name).sees_future:
            return Dim.total(_Decoding(graph, horizons(graph, origin.name)).region(graph.region).values())
    return None


class _Decoding:
    def __init__(self, graph: Graph, horizons: Mapping[str, Horizon]) -> None:
        self._instances = graph.instances
        self._horizons = horizons
        self._windows: dict[str, int] = {}  # of maps and what reads them, how many positions before its own
        self._lengths: dict[str, Dim] = {}  # of the bodies of scans, in those of the model

    def region(self, region: Region) -> _Sizes:
        types, sizes = region.types(), _Sizes()
        for group in groups_of_maps(region.nodes):
            size, ids = window(group, self._instances), {node.id for node in group}
            if size and ids.isdisjoint(region.results):
                self._windows |= dict.fromkeys(ids, size - 1)
        for node in region.nodes:
            if not any(map(self._grows, node.inputs)):
                continue
            if isinstance(node.operation, Call):
                sizes |= self._call(node, node.operation.instance, types)
            elif isinstance(node.operation, Scan):
                sizes |= self._scan(node, node.operation, types)
            elif node.regions:
                sizes |= self._steps(node, types)
        return sizes

    def _grows(self, value: str) -> bool:
        return self._horizons.get(value, NOTHING) != NOTHING

    def _arguments_read_elsewhere(self, node: Node, types: Mapping[str, Type]) -> list[str]:
        assert node.instance is not None
        far = []
        for source, manner in zip(
            node.inputs, (manner_of(read)[0] for read in self._instances[node.instance].reads), strict=False
        ):
            is_map = types[source].name == "map"
            rows = {*_OF_OTHER_ROWS, *([Manner.CAUSAL] if node.type.name == "map" else [])}
            if manner in rows if is_map else manner not in _OF_THE_POSITION:
                far.append(source)
        return far

    def _call(self, node: Node, path: str, types: Mapping[str, Type]) -> _Sizes:
        instance, far = self._instances[path], self._arguments_read_elsewhere(node, types)
        if instance.costs.state is None:
            kinds = {source: types[source] for source in far if self._grows(source)}
            before = self._windows.get(node.id)
            if before is None:
                return {source: self._size(kind) for source, kind in kinds.items()}
            return {
                (before, source): Type(kind.name, (Dim.of(before), *kind.dims[1:])).count
                for source, kind in kinds.items()
            }
        lengths = instance.lengths_of(types[source] for source in node.inputs)
        return {(path, *far): instance.costs.state.substitute(lengths).substitute(self._lengths)}

    def _steps(self, node: Node, types: Mapping[str, Type]) -> _Sizes:
        """What a loop over steps keeps: of values that its steps share, no copy for each."""
        (body,), layout = node.regions, loop_layout(node)
        captured = [value.id for value in body.inputs[layout.inner_captured :]]
        outer = dict(zip(captured, node.inputs[layout.outer_captured :], strict=True))
        shares_weights = isinstance(node.operation, Repeat | Halting)
        sizes, of_step = _Sizes(), Dim.of(0)
        for key, size in self.region(body).items():
            if key in outer:
                sizes[outer[str(key)]] = size
            elif shares_weights and isinstance(key, tuple) and _is_within(key[1:], captured):
                sizes[(key[0], *(outer[source] for source in key[1:]))] = size
            else:
                of_step = of_step + size
        return sizes | {node.id: of_step * Dim.of(step_limit(node.operation) or 1)}

    def _scan(self, node: Node, scan: Scan, types: Mapping[str, Type]) -> _Sizes:
        (body,), layout = node.regions, loop_layout(node)
        scanned = types[node.inputs[0]].lengths[0].substitute(self._lengths)
        chunk = None if takes_positions(node) else body.inputs[0].type.lengths[0]
        part = types[node.inputs[0]].part
        if chunk is not None:
            size = scanned if part is None or part.constant == 0 else part
            self._lengths |= dict.fromkeys(chunk.names, size)
            self._lengths |= dict.fromkeys(chunk_count(chunk).names, Dim.of(f"({scanned}/{size})"))
        for index, growth in growths(node).items():
            first = types[node.inputs[layout.outer + index]].lengths[0]
            grown = (first + growth.total(scanned, chunk)).substitute(self._lengths)
            self._lengths |= dict.fromkeys(body.inputs[layout.inner + index].type.lengths[0].names, grown)
        sizes: _Sizes = {
            (node.id, state.id): self._size(state.type)
            for state in body.inputs[layout.inner : layout.inner + layout.states]
        }
        if scan.before is not None:
            before = body.inputs[1].type
            self._lengths |= dict.fromkeys(before.lengths[0].names, Dim.of(scan.before) if scan.before else scanned)
            sizes[node.id] = self._size(before)
        if chunk is not None:
            return sizes | {(node.id, key): size for key, size in self.region(body).items()}
        captured = [source for source in node.inputs[layout.outer_captured :] if self._grows(source)]
        return sizes | {source: self._size(types[source]) for source in captured if types[source].lengths}

    def _size(self, kind: Type) -> Dim:
        return kind.count.substitute(self._lengths)


def _is_within(values: Collection[Hashable], others: Collection[str]) -> bool:
    return bool(values) and all(value in others for value in values)
