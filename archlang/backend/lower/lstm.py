"""A scan that is an LSTM is one operation of torch: the last part of the pass `scan_gradients`.

    i, f, g, o = linear maps of v and s;    c <- σ(f) c + σ(i) tanh(g);    s <- σ(o) tanh(c);    emit s

The four may be parts of one map or sums of several, in any order, of `v` or of parts of it. `function` of an
elementwise block's class is that of torch which it computes."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch.nn.functional import pad

from archlang.backend.lower.affine_forms import NotParallel
from archlang.backend.lower.chunk_batching import is_per_sample
from archlang.backend.lower.code import Code, PassContext, compile_graph
from archlang.backend.lower.parallel_scans import role
from archlang.backend.runtime.scan_gradients import LstmScan


@dataclass(eq=False)
class LstmBody:
    """The body of a scan of two states, with their values after a step and what is emitted. `width` returns the number
    of features of a vector."""

    code: Code
    context: PassContext
    part: fx.Node
    states: Sequence[fx.Node]
    results: Sequence[fx.Node]
    width: Callable[[fx.Node], int]
    graph: fx.Graph = field(default_factory=fx.Graph)
    modules: dict[str, type[nn.Module]] = field(default_factory=dict)

    def form(self, name: str) -> tuple[LstmScan, Code] | None:
        """Returns what runs it, and a function that returns its weights, if it is an LSTM."""
        count = len(self.states)
        for s, c in ((0, 1), (1, 0)) if count == 2 else ():
            gates = self._gates(s, c)
            if not gates or any(result is not self.results[s] for result in self.results[count:]):
                continue
            if len({*map(self.width, (*self.states, *gates))}) > 1:
                continue
            try:
                rows = [self._rows(gate, self.states[s]) for gate in gates]
            except NotParallel:
                continue
            kinds = sorted(rows[0])  # of the part, of the state, and of a bias, if there is one
            if any(sorted(own) != kinds for own in rows) or not {"part", "state"} <= {*kinds}:
                continue
            weights = [
                self._call(torch.cat, [own[kind] for own in rows]) for kind in ("part", "state", "bias")[: len(kinds)]
            ]
            self.graph.output(tuple(weights))
            title = f"{self.code.title}_{name}_weights"
            code = compile_graph(f"{name}_weights", title, self.graph, self.code.nodes, {}, (), (), None)
            return LstmScan(code.function, (s, c), self.modules), code
        return None

    def _call(self, function: Any, *arguments: Any) -> fx.Node:  # Any: of torch.fx
        return self.graph.create_node("call_function", function, arguments)

    # The equations

    def _gates(self, s: int, c: int) -> Sequence[fx.Node]:
        """Returns i, f, g, o, if `s` and `c` are the indices of the states s and c; nothing if it is no LSTM."""
        for reading, squashed in _orders(self.results[s], operator.mul):
            for old, new in _orders(self.results[c], operator.add):
                for forgetting, state in _orders(old, operator.mul):
                    for writing, candidate in _orders(new, operator.mul):
                        i, f, o = (self._argument(gate, torch.sigmoid) for gate in (writing, forgetting, reading))
                        g, shown = (self._argument(value, torch.tanh) for value in (candidate, squashed))
                        if i and f and g and o and state is self.states[c] and shown is self.results[c]:
                            return i, f, g, o
        return ()

    def _argument(self, node: fx.Node, function: object) -> fx.Node | None:
        """Returns the argument of a function, if a value is its result."""
        kind, instance = role(node, self.code, self.context)
        if kind != "elementwise" or instance is None:
            return None
        own = self.context.classes[instance.path]
        self.modules[str(node.target)] = own
        return node.all_input_nodes[0] if getattr(own, "function", None) is function else None

    # The maps

    def _rows(self, gate: fx.Node, state: fx.Node) -> Mapping[str, fx.Node]:
        """Returns the rows of the weights of the part and of the state, and of the bias, that compute a gate."""
        rows: dict[str, fx.Node] = {}
        for kind, value in self._terms(gate, 0, self.width(gate), state):
            rows[kind] = value if kind not in rows else self._call(operator.add, rows[kind], value)
        return rows

    def _terms(self, node: fx.Node, start: int, width: int, state: fx.Node) -> Iterator[tuple[str, fx.Node]]:
        """Yields these rows, for the features from `start` on of a value that is linear in the part and the state."""
        kind, instance = role(node, self.code, self.context)
        arguments: list[Any] = [*node.args]  # Any: of torch.fx
        source, first = self._cut(node)
        if source is not None:
            yield from self._terms(source, start + first, width, state)
        elif node.target is operator.add and all(isinstance(source, fx.Node) for source in arguments):
            for source in arguments:
                yield from self._terms(source, start, width, state)
        elif kind == "affine" and instance is not None and is_per_sample(node, None, self.code, self.context.instances):
            self.modules[str(node.target)] = self.context.classes[instance.path]
            parts = [*arguments[0].args] if role(arguments[0], self.code, self.context)[0] == "joined" else arguments
            weight = self.graph.create_node("get_attr", f"{node.target}.weight")
            rows, first = slice(start, start + width), 0
            for part in parts:
                end = first + self.width(part)
                columns = self._call(operator.getitem, weight, (rows, slice(first, end)))
                if part is state:
                    yield "state", columns
                else:
                    before = self._place_in_part(part)
                    behind = self.width(self.part) - before - self.width(part)
                    yield "part", self._call(pad, columns, (before, behind)) if before or behind else columns
                first = end
            if instance.statics.get("bias") is not False:
                bias = self.graph.create_node("get_attr", f"{node.target}.bias")
                yield "bias", self._call(operator.getitem, bias, rows)
        else:
            raise NotParallel("it is no linear map")

    def _place_in_part(self, node: fx.Node) -> int:
        """Returns where the features of a value begin among those of the part."""
        source, start = self._cut(node)
        if source is None:
            if node is not self.part:
                raise NotParallel("it is no feature of the part")
            return 0
        return start + self._place_in_part(source)

    def _cut(self, node: fx.Node) -> tuple[fx.Node | None, int]:
        """Returns the value of which another is a part, and where that begins; None if it is no part."""
        arguments: list[Any] = [*node.args]  # Any: of torch.fx
        cut = arguments[0] if node.target is operator.getitem else None
        if isinstance(cut, fx.Node) and cut.target == "split_with_sizes":
            source, widths, _ = list[Any](cut.args)
            return source, sum(widths[: arguments[1]])
        kind, instance = role(node, self.code, self.context)
        if kind == "part" and instance is not None:
            start: Any = instance.statics["start"]  # Any: of the kind of value
            return arguments[0], start
        return None, 0


def _orders(node: fx.Node, function: object) -> Iterator[Sequence[Any]]:  # Any: of torch.fx
    """Yields the arguments of a sum or product in both orders, if a value is one of two values."""
    if node.target is function and all(isinstance(argument, fx.Node) for argument in node.args):
        yield node.args
        yield node.args[::-1]
