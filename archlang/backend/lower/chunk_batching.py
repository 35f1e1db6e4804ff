"""The pass `batch_chunks`: splits the body of a scan, so that its head, which does not read the memory, computes many
chunks at once.

    def scan(self, c, mask_c, m):              def scan_head(self, c, mask_c):
        norm = self.norm(c)                        norm = self.norm(c)
        attention = self.attention(norm, …)        return (self.attention(norm, …),)
        memory = self.memory(m, attention)     def scan_rest(self, c, mask_c, m, attention):
        return (memory, attention)                 return (self.memory(m, attention), attention)

Random numbers, as of dropout, are drawn for many chunks at once, and so in another order than chunk by chunk."""

from collections.abc import Collection, Mapping, Sequence

from torch import fx

from archlang.backend.lower.code import Code, LoweredLoop, PassContext, SplitCode, compile_graph
from archlang.backend.lower.lengths import chunk_lengths, growing_lengths
from archlang.graph.graph import Instance, Node, loop_layout
from archlang.graph.operations import Call, Halting, Scan


def split_scan(scan: LoweredLoop, context: PassContext) -> None:
    """Splits the body of a scan if it calls a block on values that do not depend on the memory."""
    name, code, shape, instances = scan.name, scan.body, loop_layout(scan.node), context.instances
    # The chunk, or the position, and what is before it, with their masks; then the memory.
    first = shape.inner + len(chunk_lengths(scan.node))
    carried = range(first, first + shape.states + len(growing_lengths(scan.node)))
    free = {node for index, node in enumerate(_placeholders(code)) if index not in carried}
    nodes = [node for node in code.graph.nodes if node.op != "placeholder"]
    loops = {loop.name: loop for loop in code.loops}
    for node in nodes:
        loop = loops.get(str(node.target))
        if node.op in ("call_module", "call_function") and _is_free(node, loop, free, code, instances):
            free.add(node)
    head, rest = [node for node in nodes if node in free], [node for node in nodes if node not in free]
    if any(node.op == "call_module" for node in head):
        # The results of the head are the values that the rest reads.
        read = {source for node in rest for source in node.all_input_nodes}
        passed = [node for node in head if node in read]
        reads, head_code = _write_head(name, code, head, passed, context)
        scan.split = SplitCode(head_code, _write_rest(name, code, rest, passed, context), reads)


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
    return node.op == "call_function" or is_per_sample(node, loop, code, instances)


def is_per_sample(node: fx.Node, loop: LoweredLoop | None, code: Code, instances: Mapping[str, Instance]) -> bool:
    """Returns whether each sample of what a module computes depends on the same sample of its arguments only. `loop` is
    the loop that it runs, if it is one."""
    origin = code.nodes[node.name]
    inside = [origin, *(inner for region in origin.regions for inner in region.walk())]
    if loop is not None and any(isinstance(inner.operation, Halting | Scan) for inner in inside):
        return False  # each chunk has a ponder of its own
    return all(
        _is_per_sample(inner, instances[inner.operation.instance])
        for inner in inside
        if isinstance(inner.operation, Call)
    )


def _is_per_sample(node: Node, instance: Instance) -> bool:
    """Whether a block computes each sample independently of the others. Random numbers that it draws in training only,
    as dropout does, may be drawn for many chunks at once."""
    cuts = any(kind.name == "chunks" for kind in node.types)
    return not cuts and not {"batch", "padding", "random"} & {*instance.caveats}


def _write_head(
    name: str, code: Code, head: Sequence[fx.Node], passed: Sequence[fx.Node], context: PassContext
) -> tuple[tuple[int, ...], Code]:
    """Returns the indices of the placeholders that the head reads, and its code, whose results are `passed`."""
    graph, origins, placeholders = fx.Graph(), dict[str, Node](), _placeholders(code)
    used = {source for node in head for source in node.all_input_nodes}
    reads = tuple(index for index, placeholder in enumerate(placeholders) if placeholder in used)
    copies = {placeholders[index]: graph.node_copy(placeholders[index]) for index in reads}
    for node in head:
        copies[node] = _copy(code, graph, node, copies, origins)
    graph.output(tuple(copies[node] for node in passed))
    return reads, compile_graph(f"{name}_head", f"{code.title}_head", graph, origins, code.types, (), (), context)


def _write_rest(
    name: str, code: Code, rest: Sequence[fx.Node], passed: Sequence[fx.Node], context: PassContext
) -> Code:
    graph, origins = fx.Graph(), dict[str, Node]()
    copies = {placeholder: graph.node_copy(placeholder) for placeholder in _placeholders(code)}
    copies.update((node, graph.create_node("placeholder", node.name, (), {}, node.name)) for node in passed)
    for node in rest:
        if node.op == "output":
            graph.output(fx.node.map_arg(node.args[0], copies.__getitem__))
        else:
            copies[node] = _copy(code, graph, node, copies, origins)
    return compile_graph(f"{name}_rest", f"{code.title}_rest", graph, origins, code.types, (), code.extras, context)


def _copy(
    code: Code, graph: fx.Graph, node: fx.Node, copies: Mapping[fx.Node, fx.Node], origins: dict[str, Node]
) -> fx.Node:
    copy = graph.node_copy(node, copies.__getitem__)
    if node.name in code.nodes:
        origins[copy.name] = code.nodes[node.name]
    return copy


def _placeholders(code: Code) -> list[fx.Node]:
    return [node for node in code.graph.nodes if node.op == "placeholder"]
