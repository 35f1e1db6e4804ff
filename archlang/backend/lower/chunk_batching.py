"""The pass `batch_chunks`: splits the body of a scan, so that its head, which does not read the memory, computes many
chunks at once.

    def scan(self, c, mask_c, m):              def scan_head(self, c, mask_c):
        norm = self.norm(c)                        norm = self.norm(c)
        attention = self.attention(norm, …)        return (self.attention(norm, …),)
        memory = self.memory(m, attention)     def scan_rest(self, c, mask_c, m, attention):
        return (memory, attention)                 return (self.memory(m, attention), attention)

A loop in the body begins with states that do not depend on the memory, so its first step is split in the same way: its
head becomes a part of the scan's head. Random numbers, as of dropout, are drawn for many chunks at once, and so in
another order than chunk by chunk."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import fx

from archlang.backend.lower.code import Code, LoweredLoop, SplitCode, compile_graph
from archlang.backend.lower.lengths import chunk_lengths, growing_lengths
from archlang.backend.lower.names import Names
from archlang.graph.graph import Instance, Node
from archlang.graph.loop_layout import is_idle, loop_layout
from archlang.graph.operations import Call, Experts, Halting, Scan

# The argument of a loop that holds the results of its first step's head.
_HEAD_RESULTS = "head_results"


def split_scan(scan: LoweredLoop, instances: Mapping[str, Instance]) -> None:
    """Sets the splits of a scan and of the loops in it whose bodies compute something that is independent of the
    memory."""
    shape = loop_layout(scan.node)
    count = len(_placeholders(scan.body))
    # The chunk, or the position, and what is before it, with their masks; then the memory.
    first = shape.inner + len(chunk_lengths(scan.node))
    carried = range(first, first + shape.states + len(growing_lengths(scan.node)))
    scan.split = _split(scan.name, scan.body, [index for index in range(count) if index not in carried], instances)


def _split(name: str, code: Code, free: Collection[int], instances: Mapping[str, Instance]) -> SplitCode | None:
    """Splits code into a head, which reads only the placeholders of the indices `free`, and the rest. Returns None if
    the head would call no block."""
    placeholders = _placeholders(code)
    free_nodes = {node for index, node in enumerate(placeholders) if index in free}
    first_steps: dict[fx.Node, LoweredLoop] = {}
    for node in code.graph.nodes:
        if node.op not in ("call_module", "call_function"):
            continue
        loop = _loop_of(node, code)
        if _is_free(node, loop, free_nodes, code, instances):
            free_nodes.add(node)
        elif loop is not None and _split_first_step(node, loop, free_nodes, instances):
            first_steps[node] = loop
    head = [node for node in code.graph.nodes if node in free_nodes and node.op != "placeholder"]
    if not first_steps and not any(node.op == "call_module" for node in head):
        return None
    return _Splitting(name, code, placeholders, head, first_steps).split()


def _is_free(
    node: fx.Node,
    loop: LoweredLoop | None,
    free_nodes: Collection[fx.Node],
    code: Code,
    instances: Mapping[str, Instance],
) -> bool:
    """Whether a value depends only on free nodes, and each sample of it on the same sample of them."""
    if any(source not in free_nodes for source in node.all_input_nodes):
        return False
    if node.op == "call_function":
        return True
    origin = code.nodes[node.name]
    inside = [origin, *(inner for region in origin.regions for inner in region.walk())]
    if loop is not None and any(isinstance(inner.operation, Halting | Scan) for inner in inside):
        return False  # each chunk has a ponder of its own
    return all(
        _is_per_sample(inner, inner.operation, instances) for inner in inside if isinstance(inner.operation, Call)
    )


def _is_per_sample(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Whether a block computes each sample independently of the others. Random numbers that it draws in training only,
    as dropout does, may be drawn for many chunks at once."""
    caveats = instances[call.instance].caveats
    cuts = any(kind.name == "chunks" for kind in node.types)
    return bool(node.inputs) and not cuts and not {"batch", "padding", "random"} & {*caveats}


def _split_first_step(
    node: fx.Node, loop: LoweredLoop, free_nodes: Collection[fx.Node], instances: Mapping[str, Instance]
) -> bool:
    """Sets the split of an inner loop if its first step has a head. Returns whether it has."""
    if isinstance(loop.node.operation, Scan | Experts) or is_idle(loop.node):
        return False
    free = [_body_index(loop, index) for index, argument in enumerate(node.args) if argument in free_nodes]
    loop.split = _split(loop.name, loop.body, free, instances)
    return loop.split is not None


def _body_index(loop: LoweredLoop, index: int) -> int:
    """The index among the arguments of a loop's body of an argument of its call. The body has the mixture too."""
    shape = loop_layout(loop.node)
    return index if index < shape.states else index + shape.inner_captured - shape.outer_captured


@dataclass(frozen=True, eq=False)
class _Splitting:
    """Writes the two functions of a split. `head` has the free values, and `first_steps` the loops whose first step has
    a head."""

    name: str
    code: Code
    placeholders: Sequence[fx.Node]
    head: Sequence[fx.Node]
    first_steps: Mapping[fx.Node, LoweredLoop]

    def split(self) -> SplitCode:
        head = set(self.head)
        rest = [node for node in self.code.graph.nodes if node not in head and node.op != "placeholder"]
        # The results of the head are the values that the rest reads, then those of the heads of first steps.
        read = {source for node in rest for source in node.all_input_nodes}
        passed = [node for node in self.head if node in read]
        reads, head_code = self._head_code(passed)
        return SplitCode(head_code, self._rest_code(rest, passed), reads)

    def _head_code(self, passed: Sequence[fx.Node]) -> tuple[tuple[int, ...], Code]:
        graph, origins, names = fx.Graph(), dict[str, Node](), self._names()
        arguments = {node: self._first_arguments(node, loop) for node, loop in self.first_steps.items()}
        used = {source for node in self.head for source in node.all_input_nodes}
        used.update(source for sources in arguments.values() for source in sources)
        reads = tuple(index for index, placeholder in enumerate(self.placeholders) if placeholder in used)
        copies: dict[fx.Node, fx.Node] = {}
        for index in reads:
            copies[self.placeholders[index]] = graph.node_copy(self.placeholders[index])
        for node in self.code.graph.nodes:
            if node in self.first_steps:
                loop = self.first_steps[node]
                sources = tuple(copies[source] for source in arguments[node])
                name = names.unused(f"{loop.name}_{_HEAD_RESULTS}")
                copies[node] = graph.create_node("call_module", f"{loop.name}.first_head", sources, {}, name)
                origins[copies[node].name] = loop.node
            elif node in self.head:
                copies[node] = self._copy(graph, node, copies, origins)
        graph.output((*(copies[node] for node in passed), *(copies[node] for node in self.first_steps)))
        return reads, self._compile("head", graph, origins, ())

    def _first_arguments(self, node: fx.Node, loop: LoweredLoop) -> list[fx.Node]:
        """The arguments of a loop's call that the head of its first step reads."""
        assert loop.split is not None
        sources = {
            _body_index(loop, index): source for index, source in enumerate(node.args) if isinstance(source, fx.Node)
        }
        return [sources[index] for index in loop.split.reads]

    def _rest_code(self, rest: Sequence[fx.Node], passed: Sequence[fx.Node]) -> Code:
        graph, origins, names = fx.Graph(), dict[str, Node](), self._names()
        copies = {placeholder: graph.node_copy(placeholder) for placeholder in self.placeholders}
        copies.update((node, _argument(graph, node.name)) for node in passed)
        head_results = {
            node: _argument(graph, names.unused(f"{loop.name}_{_HEAD_RESULTS}"))
            for node, loop in self.first_steps.items()
        }
        for node in rest:
            if node.op == "output":
                graph.output(fx.node.map_arg(node.args[0], copies.__getitem__))
                continue
            copies[node] = self._copy(graph, node, copies, origins)
            if node in head_results:
                copies[node].update_kwarg(_HEAD_RESULTS, head_results[node])
        return self._compile("rest", graph, origins, self.code.extras)

    def _names(self) -> Names:
        """Names for values that the code does not have; the two functions use its names for its values."""
        return Names(node.name for node in self.code.graph.nodes)

    def _copy(
        self, graph: fx.Graph, node: fx.Node, copies: Mapping[fx.Node, fx.Node], origins: dict[str, Node]
    ) -> fx.Node:
        copy = graph.node_copy(node, copies.__getitem__)
        if node.name in self.code.nodes:
            origins[copy.name] = self.code.nodes[node.name]
        return copy

    def _compile(self, part: str, graph: fx.Graph, origins: Mapping[str, Node], extras: tuple[str, ...]) -> Code:
        return compile_graph(f"{self.name}_{part}", f"{self.code.title}_{part}", graph, origins, (), extras)


def _argument(graph: fx.Graph, name: str) -> fx.Node:
    return graph.create_node("placeholder", name, (), {}, name)


def _placeholders(code: Code) -> list[fx.Node]:
    return [node for node in code.graph.nodes if node.op == "placeholder"]


def _loop_of(node: fx.Node, code: Code) -> LoweredLoop | None:
    """The loop that a value calls, or None."""
    return next((loop for loop in code.loops if node.op == "call_module" and loop.name == node.target), None)
