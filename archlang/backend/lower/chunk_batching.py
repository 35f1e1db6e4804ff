"""What the body of a scan computes without its memory, split off, so that it is computed for many chunks at once.

    def scan(self, c, mask_c, m):              def scan_head(self, c, mask_c):
        norm = self.norm(c)                        norm = self.norm(c)
        attention = self.attention(norm, …)        return (self.attention(norm, …),)
        memory = self.memory(m, attention)     def scan_rest(self, c, mask_c, m, attention):
        return (memory, attention)                 return (self.memory(m, attention), attention)

A loop in the body begins with states that the memory has not reached, and its first step is split in the same way: its
head goes into the scan's. Random numbers, as of dropout, are drawn for many chunks at once as well, so in another order
than chunk by chunk."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from torch import fx

from archlang.backend.lower.code import Code, Loop, Split, write
from archlang.backend.lower.names import Names
from archlang.graph.graph import Instance, Node
from archlang.graph.loop_layout import is_idle, loop_layout
from archlang.graph.operations import Call, Halting, Join, Scan

# The argument of a loop that has what its first step's head gave.
_AHEAD = "ahead"


def split_scan(scan: Loop, instances: Mapping[str, Instance]) -> None:
    """Splits the body of a scan, and those of the loops in it, where something in it does not depend on the memory."""
    shape = loop_layout(scan.node)
    count = len(_placeholders(scan.body))
    # The chunk and its mask, then the memory.
    carried = range(2, 2 + shape.states)
    scan.split = _split(scan.name, scan.body, [index for index in range(count) if index not in carried], instances)


def _split(name: str, code: Code, free: Collection[int], instances: Mapping[str, Instance]) -> Split | None:
    """The code in two, the first of which reads only the placeholders of these numbers; None where it has no call."""
    placeholders = _placeholders(code)
    found = {node for index, node in enumerate(placeholders) if index in free}
    firsts: dict[fx.Node, Loop] = {}
    for node in code.graph.nodes:
        if node.op not in ("call_module", "call_function"):
            continue
        loop = _loop_of(node, code)
        if _is_free(node, loop, found, code, instances):
            found.add(node)
        elif loop is not None and _split_first(node, loop, found, instances):
            firsts[node] = loop
    heads = [node for node in code.graph.nodes if node in found and node.op != "placeholder"]
    if not firsts and not any(node.op == "call_module" and node.all_input_nodes for node in heads):
        return None
    return _Splitting(name, code, placeholders, heads, firsts).split()


def _is_free(
    node: fx.Node, loop: Loop | None, found: Collection[fx.Node], code: Code, instances: Mapping[str, Instance]
) -> bool:
    """Whether a value depends on nothing but what is found, and computes each sample by itself."""
    if any(one not in found for one in node.all_input_nodes):
        return False
    if node.op == "call_function":
        return True
    origin = code.nodes[node.name]
    if not node.all_input_nodes:
        return isinstance(origin.operation, Join)  # its weights
    inside = [origin, *(inner for region in origin.regions for inner in region.walk())]
    if loop is not None and any(isinstance(one.operation, Halting | Scan) for one in inside):
        return False  # what they add to the loss is of each chunk
    return all(_is_of_samples(one, one.operation, instances) for one in inside if isinstance(one.operation, Call))


def _is_of_samples(node: Node, call: Call, instances: Mapping[str, Instance]) -> bool:
    """Whether a block computes each sample by itself. What it draws in training, as dropout does, may be drawn for many
    chunks at once."""
    caveats = instances[call.instance].caveats
    cuts = any(kind.name == "chunks" for kind in node.types)
    return bool(node.inputs) and not cuts and not {"batch", "padding", "random"} & {*caveats}


def _split_first(node: fx.Node, loop: Loop, found: Collection[fx.Node], instances: Mapping[str, Instance]) -> bool:
    """Splits the body of an inner loop, if something of its first step is free; whether it is."""
    if isinstance(loop.node.operation, Scan) or is_idle(loop.node):
        return False
    free = [_inside(loop, index) for index, one in enumerate(node.args) if one in found]
    loop.split = _split(loop.name, loop.body, free, instances)
    return loop.split is not None


def _inside(loop: Loop, index: int) -> int:
    """Where an argument of a loop's call stands among those of its body: the mixture comes between."""
    shape = loop_layout(loop.node)
    return index if index < shape.states else index + shape.inner_captured - shape.outer_captured


@dataclass(frozen=True, eq=False)
class _Splitting:
    """Writes the two halves of a code. `heads` are the values that are free, and `firsts` the loops whose first step
    has some."""

    name: str
    code: Code
    placeholders: Sequence[fx.Node]
    heads: Sequence[fx.Node]
    firsts: Mapping[fx.Node, Loop]

    def split(self) -> Split:
        heads, code = set(self.heads), self.code
        rest = [node for node in code.graph.nodes if node not in heads and node.op != "placeholder"]
        # What the rest reads of the head, in the head's order; then what the loops in the rest begin with.
        read = {one for node in rest for one in node.all_input_nodes}
        over = [node for node in self.heads if node in read]
        reads, head = self._head(over)
        return Split(head, self._rest(rest, over), reads)

    def _head(self, over: Sequence[fx.Node]) -> tuple[tuple[int, ...], Code]:
        graph, origins, names = fx.Graph(), dict[str, Node](), self._names()
        called = {node: self._arguments(node, loop) for node, loop in self.firsts.items()}
        used = {one for node in self.heads for one in node.all_input_nodes}
        used.update(one for arguments in called.values() for one in arguments)
        reads = tuple(index for index, one in enumerate(self.placeholders) if one in used)
        copies: dict[fx.Node, fx.Node] = {}
        for index in reads:
            one = self.placeholders[index]
            copies[one] = graph.node_copy(one)
        for node in self.code.graph.nodes:
            if node in self.firsts:
                loop = self.firsts[node]
                name = names.unused(f"{loop.name}_{_AHEAD}")
                given = tuple(copies[one] for one in called[node])
                made = graph.create_node("call_module", f"{loop.name}.first", given, {}, name)
                copies[node] = made
                origins[made.name] = loop.node
            elif node in self.heads:
                copies[node] = self._copy(graph, node, copies, origins)
        graph.output((*(copies[one] for one in over), *(copies[node] for node in self.firsts)))
        return reads, self._write("head", graph, origins, 0)

    def _arguments(self, node: fx.Node, loop: Loop) -> list[fx.Node]:
        """What the head of a loop's first step reads, of the arguments of the loop's call."""
        assert loop.split is not None
        at = {_inside(loop, index): one for index, one in enumerate(node.args) if isinstance(one, fx.Node)}
        return [at[index] for index in loop.split.reads]

    def _rest(self, rest: Sequence[fx.Node], over: Sequence[fx.Node]) -> Code:
        graph, origins, names = fx.Graph(), dict[str, Node](), self._names()
        copies = {one: graph.node_copy(one) for one in self.placeholders}
        copies.update((one, _argument(graph, one.name)) for one in over)
        begun = {node: _argument(graph, names.unused(f"{loop.name}_{_AHEAD}")) for node, loop in self.firsts.items()}
        for node in rest:
            if node.op == "output":
                graph.output(fx.node.map_arg(node.args[0], copies.__getitem__))
                continue
            made = copies[node] = self._copy(graph, node, copies, origins)
            if node in begun:
                made.update_kwarg(_AHEAD, begun[node])
        return self._write("rest", graph, origins, self.code.extras)

    def _names(self) -> Names:
        """Both halves call a value as the code does; these names are for other values."""
        return Names(node.name for node in self.code.graph.nodes)

    def _copy(
        self, graph: fx.Graph, node: fx.Node, copies: Mapping[fx.Node, fx.Node], origins: dict[str, Node]
    ) -> fx.Node:
        made = graph.node_copy(node, copies.__getitem__)
        if node.name in self.code.nodes:
            origins[made.name] = self.code.nodes[node.name]
        return made

    def _write(self, half: str, graph: fx.Graph, origins: Mapping[str, Node], extras: int) -> Code:
        name = f"{self.name}_{half}"
        return write(name, f"{self.code.title}_{half}", graph, origins, (), extras)


def _argument(graph: fx.Graph, name: str) -> fx.Node:
    return graph.create_node("placeholder", name, (), {}, name)


def _placeholders(code: Code) -> list[fx.Node]:
    return [node for node in code.graph.nodes if node.op == "placeholder"]


def _loop_of(node: fx.Node, code: Code) -> Loop | None:
    """The loop that a value calls, if it does."""
    return next((loop for loop in code.loops if node.op == "call_module" and loop.name == node.target), None)
