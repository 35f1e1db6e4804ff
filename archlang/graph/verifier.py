"""Checks a graph against the rules of `graph.py`. A graph that breaks a rule is a bug of archlang."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from archlang.graph import operations
from archlang.graph.graph import (
    NUMBER,
    ONE_NUMBER,
    Graph,
    Input,
    Instance,
    Node,
    Region,
    is_loss_of,
    loop_layout,
    scope_of,
    scopes_around,
)
from archlang.graph.growth import Growth
from archlang.types import CONSTRUCTORS, Type
from archlang.types.statics import instances_in

# The type of the part of a value that each step of a scan takes: a chunk, or one position.
_PARTS = {"chunks": "seq", "seq": "vec"}


class MalformedGraph(Exception):
    """A graph breaks a rule, which is a bug of archlang."""


def verify(graph: Graph) -> None:
    """Checks a graph.

    Raises:
        MalformedGraph: the graph breaks a rule; the message says which."""
    _Verification(graph).run()


@dataclass
class _Verification:
    """One check of a graph. `seen` are the ids so far, `counts` the steps of each stack by its path."""

    graph: Graph

    def __post_init__(self) -> None:
        self.seen: set[str] = set()
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        for path, instance in self.graph.instances.items():
            self._instance(path, instance)
        self._region(self.graph.region, "")

    def _instance(self, path: str, instance: Instance) -> None:
        where = f"instance @{path}"
        _require(instance.path == path, f"{where} says that its path is {instance.path}")
        for used in instances_in(instance.statics.values()):
            _require(used in self.graph.instances, f"{where} uses @{used}, which does not exist")
        named = tuple(dict.fromkeys(name for axes in instance.axes for name in axes if name))
        _require(named == instance.lengths, f"{where} has lengths {instance.lengths} but its axes name {named}")
        _require(
            not instance.reads or not instance.axes or len(instance.reads) == len(instance.axes),
            f"{where} reads {len(instance.reads)} arguments but has axes for {len(instance.axes)}",
        )

    # Regions

    def _region(self, region: Region, scope: str) -> None:
        values: dict[str, Input | Node] = {}
        for value in region.inputs:
            self._identity(value.id)
            self._type(value.id, value.type)
            values[value.id] = value
        for node in region.nodes:
            for source in node.inputs:
                self._use(_where(node), source, values, isinstance(node.operation, operations.Part))
            self._identity(node.id)
            self._node(node, values, scope)
            values[node.id] = node
        for result in region.results:
            self._use("the results", result, values, False)

    def _identity(self, identity: str) -> None:
        _require(identity not in self.seen, f"two values are called {identity}")
        self.seen.add(identity)

    def _use(self, user: str, source: str, values: Mapping[str, Input | Node], part: bool) -> None:
        if source not in values:
            home = "in another region" if source in self.seen else "nowhere before"
            raise MalformedGraph(f"{user} uses {source}, which is made {home}")
        value = values[source]
        if not part and isinstance(value, Node):
            _require(
                len(value.types) == 1, f"{user} uses {source}, which has {len(value.types)} results, not one of them"
            )

    def _type(self, where: str, kind: Type) -> None:
        axes = CONSTRUCTORS.get(kind.name)
        _require(axes is not None, f"{where} has the unknown type {kind.name}")
        _require(len(kind.dims) == len(axes or ()), f"{where} has type {kind}, with the wrong number of sizes")

    # Nodes

    def _node(self, node: Node, values: Mapping[str, Input | Node], scope: str) -> None:
        where = _where(node)
        for kind in node.types:
            self._type(where, kind)
        has_region = isinstance(node.operation, operations.Loop | operations.Apply)
        _require(len(node.regions) == has_region, f"{where} has {len(node.regions)} regions")
        if isinstance(node.operation, operations.Part):
            self._part(node, node.operation.index, values[node.inputs[0]] if len(node.inputs) == 1 else None)
            return
        types = [values[source].type for source in node.inputs]
        if isinstance(
            node.operation, operations.Call | operations.Product | operations.Literal | operations.Arithmetic
        ):
            _require(len(node.types) == 1, f"{where} has {len(node.types)} results")
        match node.operation:
            case operations.Call():
                self._call(node, node.operation, types, scope)
            case operations.Product(instance=path):
                self._find_instance(where, path, scope)
                _require(len(types) == 1, f"{where} has {len(types)} arguments")
                _require(_is_product(node.type, types[0]), f"{where} of a {types[0]} is {node.type}")
            case operations.Literal():
                _require(not types and node.type == NUMBER, f"{where} is no number")
            case operations.Loss(name=name):
                _require(name.isidentifier(), f"{where} is called {name!r}")
                _require(types == [ONE_NUMBER] and not node.types, f"{where} of {_show(types)} is {_show(node.types)}")
            case operations.Arithmetic():
                self._arithmetic(node, types)
            case _:
                self._inner(node, types, scope)

    def _part(self, node: Node, index: int, source: Input | Node | None) -> None:
        where = _where(node)
        _require(isinstance(source, Node) and len(source.types) != 1, f"{where} is not of a node with several results")
        assert isinstance(source, Node)
        _require(0 <= index < len(source.types), f"{where} is number {index} of {len(source.types)} results")
        _require(node.types == (source.types[index],), f"{where} is {_show(node.types)}, not {source.types[index]}")

    def _find_instance(self, where: str, path: str, scope: str) -> Instance:
        instance = self.graph.instances.get(path)
        if instance is None:
            raise MalformedGraph(f"{where} uses @{path}, which does not exist")
        _require(scope_of(path) in scopes_around(scope), f"{where} uses @{path} outside of its stack")
        return instance

    def _call(self, node: Node, call: operations.Call, types: Sequence[Type], scope: str) -> None:
        where, maps = _where(node), call.products
        instance = self._find_instance(where, call.instance, scope)
        _require(len(maps) <= len(types), f"{where} is given {len(maps)} products of {len(types)} inputs")
        types, products = types[: len(node.arguments)], types[len(node.arguments) :]
        for name, product in zip(maps, products, strict=True):
            fits = any(_is_product(product, kind) for kind in types)
            _require(fits, f"{where} is given a {product} as {name}, which is of none of its arguments")
        for what, names in (("reads", instance.reads), ("has axes for", instance.axes)):
            fits = not names or len(names) == len(types)
            _require(fits, f"{where} has {len(types)} arguments, but @{instance.path} {what} {len(names)}")
        for axes, kind in zip(instance.axes, types, strict=False):
            _require(
                len(axes) in (0, len(kind.lengths)),
                f"{where} gives @{instance.path} a {kind}, not one with axes {axes}",
            )

    def _arithmetic(self, node: Node, types: Sequence[Type]) -> None:
        where = _where(node)
        _require(
            len(types) == (1 if node.operation is operations.Arithmetic.NEGATE else 2),
            f"{where} has {len(types)} arguments",
        )
        kind = types[0] if len(types) == 1 else types[0].broadcast(types[1])
        _require(kind is not None, f"{where} mixes {_show(types)}")
        _require(node.type == kind, f"{where} of {_show(types)} is {node.type}")

    # Nodes with regions

    def _inner(self, node: Node, types: Sequence[Type], scope: str) -> None:
        where, body = _where(node), node.regions[0]
        inside, results = [value.type for value in body.inputs], node.types
        carried = len(node.types)
        growing: Sequence[int] = ()
        steps = operations.step_limit(node.operation)
        _require(steps is None or steps >= operations.emits(node.operation), f"{where} takes {steps} steps")
        match node.operation:
            case operations.Apply():
                _require(inside == list(types), f"{where} gives {_show(types)} to a body of {_show(inside)}")
            case operations.Repeat(truncated=truncated, emits=emits, drawn=drawn):
                if drawn:
                    self._find_instance(where, drawn, scope)
                _require(truncated is None or truncated >= 0, f"{where} keeps {truncated} steps")
                carried -= emits
                self._states(where, node.types[:carried], types, inside)
            case operations.Stack(path=path, count=count, emits=emits):
                carried -= emits
                self._states(where, node.types[:carried], types, inside)
                scope = self._stack(where, path, count, scope)
            case operations.Halting(emits=emits):
                carried -= emits
                self._halting(node, node.operation, types, inside, scope)
            case operations.Experts(path=path, count=count):
                carried = 0
                self._experts(node, types, inside)
                results = tuple(inside[:1])
                scope = self._stack(where, path, count, scope)
            case operations.Gradient():
                carried = 0
                _require(inside == list(types), f"{where} gives {_show(types)} to a body of {_show(inside)}")
                _require(node.types == tuple(types[:1]), f"{where} by {_show(types[:1])} is {_show(node.types)}")
                self._require_no_costs(node)
            case operations.Scan(carried=carried, emits=emits):
                growing = self._growing_states(node, node.operation, types, inside)
                results = (*node.types[:carried], *(inside[:1] if emits else []))
        self._region(body, scope)
        types_in_body = body.types()
        actual = [types_in_body[result] for result in body.results]
        _require(len(actual) == len(results), f"the body of {where} has {len(actual)} results, not {len(results)}")
        for index in growing:
            self._growth(where, types, inside, index, actual[index], node.types[index], loop_layout(node).inner)
            actual[index] = node.types[index]
        _require(
            actual[:carried] == list(results[:carried]),
            f"the body of {where} makes {_show(actual)}, not {_show(results)}",
        )
        if isinstance(node.operation, operations.Scan) and node.operation.emits:
            self._emission(node, actual[-1], inside[0], types[0])
        if isinstance(node.operation, operations.Gradient):
            _require(is_loss_of(actual[0], node.type), f"{where} by {node.type} is that of {actual[0]}")
        if isinstance(node.operation, operations.Experts):
            expected = Type(types[0].name, (*types[0].dims[:-1], *actual[0].dims))
            _require(node.type == expected and actual[0].name == "vec", f"{where} emits {actual[0]} and is {node.type}")

    def _states(self, where: str, states: Sequence[Type], inputs: Sequence[Type], inside: Sequence[Type]) -> None:
        first = list(inputs[: len(states)])
        _require(first == list(states), f"{where} begins with {_show(first)} and ends with {_show(states)}")
        _require(list(inside) == list(inputs), f"{where} gives {_show(inputs)} to a body of {_show(inside)}")

    def _halting(
        self, node: Node, loop: operations.Halting, inputs: Sequence[Type], inside: Sequence[Type], scope: str
    ) -> None:
        where, state = _where(node), loop.state
        count = len(node.types) - loop.emits
        self._find_instance(where, loop.instance, scope)
        _require(0 <= state < count, f"{where} halts state {state} of {count}")
        if loop.mixture:
            _require(
                list(inside[count : count + 1]) == [node.types[state]], f"{where} has no mixture of its state's type"
            )
            inside = [*inside[:count], *inside[count + 1 :]]
        self._states(where, node.types[:count], inputs, inside)

    def _growing_states(
        self, node: Node, scan: operations.Scan, inputs: Sequence[Type], inside: Sequence[Type]
    ) -> Sequence[int]:
        where, carried = _where(node), scan.carried
        _require(scan.truncated is None or scan.truncated > 0, f"{where} cuts after {scan.truncated} parts")
        _require(bool(inputs) and inputs[0].name in _PARTS, f"{where} does not walk a sequence or chunks")
        _require(
            0 <= carried == len(node.types) - scan.emits, f"{where} carries {carried} but has {len(node.types)} results"
        )
        part = _PARTS[inputs[0].name]
        fits = bool(inside) and inside[0].name == part and inside[0].feature == inputs[0].feature
        _require(fits, f"{where} walks {inputs[0]} with a body of {_show(inside)}")
        first_state = loop_layout(node).inner
        if scan.before is not None:
            _require(scan.before >= 0, f"{where} looks at {scan.before} positions before")
            other_lengths = {length for kind in (*inputs, inside[0]) for length in kind.lengths}
            before = [
                (kind.name, kind.feature, len(kind.lengths)) == ("seq", inputs[0].feature, 1)
                and kind.lengths[0].constant is None
                and kind.lengths[0] not in other_lengths
                for kind in inside[1:first_state]
            ]
            _require(before == [True], f"{where} takes {_show(inside[1:first_state])} as the positions before a part")
        growing = [
            index
            for index, (outer, inner) in enumerate(zip(inputs[1 : 1 + carried], inside[first_state:], strict=False))
            if outer != inner and outer.name == inner.name == "seq" and outer.feature == inner.feature
        ]
        states, own = list(node.types[:carried]), list(inside[first_state:])
        for index in growing:
            (length,) = own[index].lengths
            # States that begin with one length, and grow to one, may have one in the body.
            alike = [first_state + i for i in growing if inputs[1 + i].lengths == inputs[1 + index].lengths]
            others = [*inputs, *(kind for place, kind in enumerate(inside) if place not in alike)]
            is_own = length.symbol is not None and not any(length in kind.lengths for kind in others)
            _require(is_own, f"{where} has a growing state of the length {length}")
            states[index] = own[index] = inputs[1 + index]
        self._states(where, states, inputs[1:], own)
        return growing

    def _growth(
        self,
        where: str,
        inputs: Sequence[Type],
        inside: Sequence[Type],
        index: int,
        grown: Type,
        last: Type,
        first_state: int,
    ) -> None:
        """Checks a growing state: it is `grown` at the end of each step, and `last` after the scan."""
        (chunk,) = inside[0].lengths or (None,)
        initial, state = inputs[1 + index], inside[first_state + index]
        is_sequence = (grown.name, grown.feature) == ("seq", state.feature)
        growth = Growth.of(state.lengths[0], grown.lengths[0], chunk) if is_sequence else None
        if growth is None:
            raise MalformedGraph(f"{where} grows {state} to {grown}")
        expected = Type("seq", (initial.lengths[0] + growth.total(inputs[0].dims[0], chunk), *initial.dims[1:]))
        _require(last == expected, f"{where} grows {initial} to {last}, not {expected}")

    def _experts(self, node: Node, inputs: Sequence[Type], inside: Sequence[Type]) -> None:
        where = _where(node)
        _require(len(inputs) >= 2 and len(node.types) == 1, f"{where} has no values, no weights or no result")
        values, weights = inputs[:2]
        fits = values.name in ("seq", "vec") and (weights.name, weights.dims[:-1]) == (values.name, values.dims[:-1])
        _require(fits, f"{where} weighs {values} by {weights}")
        part = Type("vec", values.dims[-1:])
        _require(list(inside) == [part, *inputs[2:]], f"{where} of {_show(inputs)} has a body of {_show(inside)}")
        self._require_no_costs(node)

    def _require_no_costs(self, node: Node) -> None:
        inner = (inner.operation for inner in node.regions[0].walk())
        _require(not any(isinstance(operation, operations.Loss | operations.Halting) for operation in inner),
                 f"{_where(node)} has an auxiliary loss or a halting loop in it")  # fmt: skip

    def _emission(self, node: Node, emitted: Type, part: Type, parts: Type) -> None:
        fits = emitted.name == part.name and emitted.lengths == part.lengths and emitted.feature is not None
        _require(fits, f"scan {node.id} emits {emitted} for {part}")
        sequence = Type("seq", (parts.dims[0], emitted.dims[-1]))
        _require(node.types[-1] == sequence, f"scan {node.id} emits {emitted} but is {node.types[-1]}, not {sequence}")

    def _stack(self, where: str, path: str, count: int, scope: str) -> str:
        _require(scope_of(path) in scopes_around(scope), f"{where} has the path {path} outside of its stack")
        first = self.counts.setdefault(path, count)
        _require(first == count, f"two stacks at {path} have {first} and {count} steps")
        return f"{path}.*"


def _is_product(kind: Type, argument: Type) -> bool:
    """Whether a linear map of the argument can have this type."""
    return (kind.name, kind.dims[:-1]) == (argument.name, argument.dims[:-1]) and kind.feature is not None


def _where(node: Node) -> str:
    return f"{node.operation.mnemonic} {node.id}"


def _show(types: Sequence[Type]) -> str:
    return ", ".join(map(str, types)) or "nothing"


def _require(truth: bool, message: str) -> None:
    if not truth:
        raise MalformedGraph(message)
