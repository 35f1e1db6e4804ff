"""Lowers the regions of a graph to graphs of `torch.fx`, and these to Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx, nn

from archlang.backend.lower import lengths as length_facts
from archlang.backend.lower.chunk_batching import split_scan
from archlang.backend.lower.code import Code, LoweredLoop, PassContext, compile_graph
from archlang.backend.lower.names import Names, attribute_name, relative_path
from archlang.backend.lower.parallel_scans import parallel_scan
from archlang.backend.lower.scan_gradients import differentiate_scan
from archlang.backend.runtime.inputs import InputField
from archlang.backend.runtime.loops import DEPTH, PONDER
from archlang.backend.runtime.padded_division import divide_numbers, divide_where_real
from archlang.backend.runtime.scans import derived_mask, mask_of_chunks
from archlang.errors import Source
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Graph, Input, Node, Region, loop_layout, scope_of, takes_positions
from archlang.graph.operations import LOSSES, Arithmetic
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.types import Dim, Type
from archlang.types.statics import StaticValue

_FUNCTIONS: Mapping[Arithmetic, Callable[..., Any]] = {  # Any: of tensors as of numbers
    Arithmetic.ADD: operator.add,
    Arithmetic.SUBTRACT: operator.sub,
    Arithmetic.MULTIPLY: operator.mul,
    Arithmetic.DIVIDE: operator.truediv,
    Arithmetic.NEGATE: operator.neg,
}

_PASSES_OF_SCANS = {"batch_chunks": split_scan, "parallel_scans": parallel_scan, "scan_gradients": differentiate_scan}
# The names in generated code of functions that torch.fx does not write as operators.
_CALLED: Sequence[Callable[..., Any]] = (
    *_FUNCTIONS.values(), divide_numbers, divide_where_real, derived_mask, mask_of_chunks,
)  # fmt: skip
_GLOBALS = [f"{function.__module__}.{function.__qualname__}".replace(".", "_") for function in _CALLED]
# A plain file has these under their own names.
_GLOBALS += [function.__name__ for function in _CALLED if function not in _FUNCTIONS.values()]

# A value of the graph in generated code; a literal is a number.
Value = fx.Node | int | float


@dataclass(frozen=True, eq=False)
class Origin:
    """What a module was built from, so that it can be built again and drawn: its graph before all passes, the passes
    that were left out, and the trusted Python files.

    `program` is the file of the model and `used` the files that it uses, if they are known; `settings` are those that
    were passed with it, by dotted path; `recipe` is the recipe that trains it, if it was named or trained."""

    graph: Graph
    without_passes: tuple[str, ...] = ()
    plugins: Plugins = NO_PLUGINS
    program: Source | None = None
    used: tuple[Source, ...] = ()
    settings: Mapping[str, StaticValue] = field(default_factory=dict)
    recipe: str | None = None


@dataclass(frozen=True)
class PythonProgram:
    """A model as Python. Its code takes the model's fields, then masks.

    `masked` has, for each mask, the indices of the fields with its length. `inputs` describe the fields, and `result`
    is the type of the result. `origin` is what it was compiled from, if it is known."""

    graph: Graph
    code: Code
    fields: tuple[str, ...]
    masked: tuple[tuple[int, ...], ...]
    inputs: tuple[InputField, ...]
    result: Type
    context: PassContext
    origin: Origin | None = None

    def __reduce__(self) -> tuple[Callable[..., PythonProgram], tuple[Any, ...]]:  # Any: the arguments of `lower`
        # Functions compiled from text cannot be pickled.
        return lower, (self.graph, self.context.without, self.origin, self.context.classes)

    def __deepcopy__(self, memo: object) -> PythonProgram:
        return self  # immutable


def lower(
    graph: Graph,
    without: Collection[str] = (),
    origin: Origin | None = None,
    classes: Mapping[str, type[nn.Module]] | None = None,
) -> PythonProgram:
    """Returns the Python of a graph, on which `inline` has run. `without` names passes of the backend to omit;
    `classes` are those of the graph's instances, by their paths, from which passes take what they need to know."""
    graph = replace(graph, region=_with_sources(graph.region))
    with_known_forward = {path: kind for path, kind in (classes or {}).items() if not _has_another_forward(kind)}
    context = PassContext(graph.instances, with_known_forward, frozenset(without))
    lengths = length_facts.needed_lengths(graph.region, graph.instances)
    inputs = graph.region.inputs
    return PythonProgram(
        graph,
        _RegionWriter(_Attributes(graph), graph.region, "", True, context).write("forward", (), lengths),
        tuple(value.name for value in inputs),
        tuple(
            tuple(index for index, value in enumerate(inputs) if value.type.lengths[:1] == (length,))
            for length in lengths
        ),
        tuple(map(InputField.of, inputs)),
        graph.region.types()[graph.region.results[0]],
        context,
        origin,
    )


def _has_another_forward(kind: type[nn.Module]) -> bool:
    """Whether a class outside of the library computes something else than the one of the library that it extends, so
    that what this says of itself need not hold."""
    bases = (base for base in kind.__mro__ if base.__module__.startswith("archlang.") and "forward" in vars(base))
    return not kind.__module__.startswith("archlang.") and any(
        vars(base)["forward"] is not kind.forward for base in bases
    )


def batch_source(inputs: Sequence[Input]) -> Input | None:
    """Returns the first tensor among the inputs of a region; None if there is none."""
    return next((value for value in inputs if value.type.name not in ("number", "chunks")), None)


def _with_sources(region: Region) -> Region:
    """Returns the region in which every body has a tensor among its inputs, from which blocks without inputs, such as
    `learned`, take the size of the batch. A body has none if its loop emits a value that needs no state and nothing
    from outside."""
    source = batch_source(region.inputs)
    return replace(
        region, nodes=tuple(_with_captured_source(node, source) if node.regions else node for node in region.nodes)
    )


def _with_captured_source(node: Node, source: Input | None) -> Node:
    (body,) = node.regions
    if source is not None and batch_source(body.inputs) is None:
        captured = Input(f"{node.id}.batch", source.type, source.name)
        body = replace(body, inputs=(*body.inputs, captured))
        node = replace(node, inputs=(*node.inputs, source.id))
    return replace(node, regions=(_with_sources(body),))


class _Attributes:
    """Names the attributes of loops; no instance, stack or other loop of the same module has the name."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._names: dict[str, Names] = {}
        stacks = [
            node.operation.path for node in graph.region.walk() if isinstance(node.operation, operations.OwnWeights)
        ]
        for path in (*graph.instances, *stacks):
            home = scope_of(path)
            first = path[len(home) :].removeprefix(".").partition(".")[0]
            self._names_in(home).take(attribute_name(first))

    def loop(self, mnemonic: str, scope: str) -> str:
        return self._names_in(scope).unused(mnemonic)

    def _names_in(self, scope: str) -> Names:
        return self._names.setdefault(scope, Names())


class _RegionWriter:
    """Writes one region. `is_outermost` says that no halting loop is around it, so its own report their depth."""

    def __init__(
        self, attributes: _Attributes, region: Region, scope: str, is_outermost: bool, context: PassContext
    ) -> None:
        self._attributes = attributes
        self._instances = attributes.graph.instances
        self._region = region
        self._scope = scope
        self._is_outermost = is_outermost
        self._context = context
        self._code = fx.Graph()
        self._values: dict[str, Value] = {}
        self._parts: dict[str, Sequence[Value]] = {}
        self._types: dict[str, Type] = {value.id: value.type for value in region.inputs}
        self._masks: dict[Dim, fx.Node] = {}
        self._loop_results: dict[Dim, tuple[Node, fx.Node, int]] = {}  # by their lengths, with the axis of the length
        self._counted: dict[Dim, tuple[Node, Value]] = {}  # the chunks of scans, by their number
        self._origins: dict[str, Node] = {}
        self._loops: list[LoweredLoop] = []
        self._ponders: dict[frozenset[str], list[fx.Node]] = {}
        self._depths: list[fx.Node] = []
        self._losses: dict[str, list[fx.Node]] = {}  # by the names of extra results
        self._batch: fx.Node | None = None
        self._names = Names(_GLOBALS)
        self._part_names = {
            (node.inputs[0], node.operation.index): node.name
            for node in region.nodes
            if isinstance(node.operation, operations.Part)
        }

    def write(
        self,
        name: str,
        chunk: Sequence[Dim],
        lengths: Sequence[Dim],
        captured: Sequence[str] = (),
        growing: Sequence[Dim] = (),
    ) -> Code:
        """Returns the code. It takes the region's inputs, then the masks of `lengths`. An input with a length of
        `chunk`, which is a chunk or what is before it, is followed by its mask, and the states by the masks of the
        lengths `growing`. Its results are the region's, then the ponder and the depth of its halting loops, and its
        auxiliary losses. `captured` has the names of the last inputs in the code around the region."""
        inputs = self._region.inputs
        outside = ("",) * (len(inputs) - len(captured)) + tuple(captured)
        for value, outer in zip(inputs, outside, strict=True):
            self._values[value.id] = self._add_argument(value.name or outer or "value")
            self._take_masks([length for length in value.type.lengths if length in chunk])
            if len(self._values) == len(inputs) - len(captured):
                self._take_masks(growing)
        self._take_masks(lengths)
        for node in self._region.nodes:
            self._node(node)
            if len(node.types) == 1:
                self._types[node.id] = node.type
        results = [self._values[result] for result in self._region.results]
        # Loops that halt by the same weights, as for the two sides of a pair, count once: their ponder is averaged, as
        # in the program of Dynamic Halt.
        ponders = [self._total(values, True) for values in self._ponders.values()]
        costs = {PONDER: ponders, DEPTH: self._depths, **self._losses}
        extras = {name: self._total(values, name == DEPTH) for name, values in costs.items() if values}
        # A loop's body always returns a tuple, so its runtime does not check.
        self._code.output(results[0] if name == "forward" and not extras else (*results, *extras.values()))
        title = f"{self._attributes.graph.name}.{name}"
        types = {
            value.name: self._types[identity]
            for identity, value in self._values.items()
            if isinstance(value, fx.Node) and identity in self._types
        }
        return compile_graph(
            name, title, self._code, self._origins, types, tuple(self._loops), tuple(extras), self._context
        )

    def _take_masks(self, lengths: Sequence[Dim]) -> None:
        for length in lengths:
            self._masks[length] = self._add_argument(f"mask_{_words(length)}")

    def _add_argument(self, preferred: str) -> fx.Node:
        return self._create("placeholder", None, (), {}, preferred)

    def _create(
        self,
        kind: str,
        target: str | Callable[..., Any] | None,
        inputs: tuple[Value | tuple[int, ...] | None, ...],
        keywords: dict[str, Any],  # Any: as in `_emit`
        preferred: str,
    ) -> fx.Node:
        """Adds a value of the function; the target of an argument is its name."""
        name = self._names.unused(preferred)
        return self._code.create_node(kind, name if target is None else target, inputs, keywords, name)

    def _total(self, values: Sequence[fx.Node], mean: bool) -> fx.Node:
        total = values[0]
        for value in values[1:]:
            total = self._code.call_function(operator.add, (total, value))
        return self._code.call_function(operator.truediv, (total, len(values))) if mean and values[1:] else total

    def _emit(
        self,
        node: Node,
        target: str | Callable[..., Any],
        inputs: Sequence[Value | tuple[int, ...] | None],
        name: str,
        keywords: Mapping[str, Any] | None = None,  # Any: a mask, or products by their names
    ) -> fx.Node:
        kind = "call_module" if isinstance(target, str) else "call_function"
        value = self._create(kind, target, tuple(inputs), dict(keywords or {}), name)
        self._origins[value.name] = node
        return value

    def _part(self, node: Node, results: fx.Node, index: int, name: str) -> fx.Node:
        return self._emit(node, operator.getitem, [results, index], name)

    # Nodes

    def _node(self, node: Node) -> None:
        if isinstance(node.operation, operations.Part):
            self._values[node.id] = self._parts[node.inputs[0]][node.operation.index]
            return
        inputs = [self._values[source] for source in node.inputs]
        match node.operation:
            case operations.Literal(value=value):
                self._values[node.id] = float(value)
            case Arithmetic() as operation:
                # The division of two numbers never raises.
                numbers = operation is Arithmetic.DIVIDE and node.type == NUMBER
                function = divide_numbers if numbers else _FUNCTIONS[operation]
                operands: list[Value | None] = [self._operand(node, source) for source in node.inputs]
                lengths = length_facts.divisor_lengths(node, self._types)
                if lengths:
                    function = divide_where_real
                    operands += [self._mask(length) for length in lengths]
                self._values[node.id] = self._emit(node, function, operands, node.name or operation.mnemonic)
            case operations.Loss(name=name):
                loss = self._emit(node, torch.squeeze, [inputs[0], 1], name)
                self._losses.setdefault(f"{LOSSES}{name}", []).append(loss)
            case operations.Call() as call:
                arguments = len(node.arguments)
                self._values[node.id] = self._call(node, call, inputs[:arguments], inputs[arguments:])
            case operations.Product(instance=path, name=name):
                self._values[node.id] = self._emit(node, f"{relative_path(path, self._scope)}.{name}", inputs, name)
            case _:
                self._parts[node.id] = self._loop(node, inputs)
        if node.id in self._parts and len(node.types) == 1:
            self._values[node.id] = self._parts[node.id][0]

    def _operand(self, node: Node, source: str) -> Value:
        """An operand of arithmetic; a vector gets an axis for each length of the result."""
        value = self._values[source]
        if self._types[source].name != "vec":
            return value
        name = value.name if isinstance(value, fx.Node) else "vector"
        for _ in node.type.lengths:
            value = self._emit(node, torch.unsqueeze, [value, 1], f"{name}_per_position")
        return value

    def _call(self, node: Node, call: operations.Call, inputs: Sequence[Value], products: Sequence[Value]) -> fx.Node:
        instance = self._instances[call.instance]
        types = [self._types[source] for source in node.arguments]
        lengths = length_facts.named_lengths(instance, types)
        masks: dict[str, Any] = {f"mask_{name}": self._mask(lengths.get(name)) for name in instance.lengths}
        if products:
            masks["products"] = dict(zip(call.products, products, strict=True))
        target, name = relative_path(instance.path, self._scope), node.name or instance.block
        if not inputs:
            return self._emit(node, target, [self._batch_size()], name)
        if not instance.grows:
            return self._emit(node, target, inputs, name, masks)
        pair = self._emit(node, target, inputs, f"{name}_and_mask", masks)
        value = self._part(node, pair, 0, name)
        for length in length_facts.grown_lengths(instance, types, node.type):
            if length not in self._masks:
                self._masks[length] = self._part(node, pair, 1, f"mask_{_words(length)}")
        return value

    def _mask(self, length: Dim | None) -> fx.Node | None:
        """The mask of a length; None if every position is real."""
        if length is None or length.constant is not None:
            return None
        if length in self._counted and length not in self._masks:
            node, chunks = self._counted[length]
            self._masks[length] = self._emit(node, mask_of_chunks, [chunks], f"mask_{_words(length)}")
        if length not in self._masks:
            node, value, axis = self._loop_results[length]
            parts = length_facts.summands(length) or {}
            arguments = [value, axis, tuple(parts.values()), *map(self._mask, parts)]
            self._masks[length] = self._emit(node, derived_mask, arguments, f"mask_{_words(length)}")
        return self._masks[length]

    def _batch_size(self) -> fx.Node:
        if self._batch is None:
            source = batch_source(self._region.inputs)
            assert source is not None, "every body has one"
            self._batch = self._create("call_method", "size", (self._values[source.id], 0), {}, "batch")
        return self._batch

    def _loop(self, node: Node, inputs: Sequence[Value]) -> Sequence[fx.Node]:
        """Calls the loop, and writes its body. Returns its results."""
        body, chunk, growing = node.regions[0], length_facts.chunk_lengths(node), length_facts.growing_lengths(node)
        own = (*chunk, *growing)
        lengths = [length for length in length_facts.needed_lengths(body, self._instances) if length not in own]
        # The attribute of a stack's own name holds its steps.
        stack = node.operation if isinstance(node.operation, operations.OwnWeights) else None
        name = self._attributes.loop(
            f"run_{node.operation.mnemonic}" if stack else node.operation.mnemonic, self._scope
        )
        scope = f"{stack.path}.*" if stack else self._scope
        halts = isinstance(node.operation, operations.Halting)
        shape = loop_layout(node)
        captured = [value.name if isinstance(value, fx.Node) else "number" for value in inputs[shape.outer_captured :]]
        writer = _RegionWriter(self._attributes, body, scope, self._is_outermost and not halts, self._context)
        code = writer.write(name, chunk, lengths, captured, growing)
        loop = LoweredLoop(name, node, self._scope, code, self._is_outermost)
        if isinstance(node.operation, operations.Scan):
            for name_of_pass, transform in _PASSES_OF_SCANS.items():
                if name_of_pass not in self._context.without:
                    transform(loop, self._context)
        self._loops.append(loop)
        types = [self._types.get(source, NUMBER) for source in node.inputs]
        states_end = shape.outer + shape.states
        growing_masks = [self._mask(length) for length in length_facts.growing_states_before(node, types)]
        arguments = [*inputs[:states_end], *growing_masks, *inputs[states_end:]]
        arguments += map(self._mask, lengths)
        self._counted.update((count, (node, inputs[0])) for count in length_facts.counted_chunks(node))
        keywords = {}
        if halts:
            keywords["mask"] = self._mask(*length_facts.halted_lengths(node) or [None])
        elif isinstance(node.operation, operations.Gradient):
            keywords["mask"] = self._mask(*length_facts.loss_lengths(node) or [None])
        elif isinstance(node.operation, operations.Scan | operations.Experts) and takes_positions(node):
            keywords["mask"] = self._mask(*self._types[node.inputs[0]].lengths or [None])
        extras = loop.extras
        if len(node.types) == 1 and not extras:
            return self._with_lengths(
                node, [self._emit(node, name, arguments, node.name or node.operation.mnemonic, keywords)]
            )
        loop_results = self._emit(node, name, arguments, f"{name}_results", keywords)
        states = [value.name for value in body.inputs[shape.inner : shape.inner + shape.states]]
        states += [node.name] * (len(node.types) - len(states))
        results = [
            self._part(node, loop_results, index, self._part_names.get((node.id, index)) or state or "result")
            for index, state in enumerate(states)
        ]
        costs = {
            name: self._part(node, loop_results, index, name.removeprefix(LOSSES))
            for index, name in enumerate(extras, start=len(results))
        }
        if PONDER in costs:
            inside = (inner.operation for inner in (node, *body.walk()))
            instances = frozenset(inner.instance for inner in inside if isinstance(inner, operations.Halting))
            self._ponders.setdefault(instances, []).append(costs.pop(PONDER))
        if DEPTH in costs:
            self._depths.append(costs.pop(DEPTH))
        for name, value in costs.items():
            self._losses.setdefault(name, []).append(value)
        return self._with_lengths(node, results)

    def _with_lengths(self, loop: Node, results: Sequence[fx.Node]) -> Sequence[fx.Node]:
        """Notes the lengths of a loop's results, whose masks `_mask` derives when they are first read."""
        for kind, result in zip(loop.types, results, strict=True):
            for axis, length in enumerate(kind.lengths, start=1):
                self._loop_results.setdefault(length, (loop, result, axis))
        return results


def _words(length: Dim) -> str:
    """A length as part of a name: `n_plus_2`."""
    text = str(length)
    for sign, word in (
        (" + ", "_plus_"),
        (" - ", "_minus_"),
        ("*", "_times_"),
        ("-", "minus_"),
        (".", "_"),
        ("/", "_over_"),
    ):
        text = text.replace(sign, word)
    return text.replace("(", "").replace(")", "")
