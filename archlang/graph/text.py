"""The text form of a typed graph: `parse_graph(print_graph(graph)) == graph`."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar, get_origin, get_type_hints

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError
from lark.tree import Meta

from archlang.disk.limits import DEEPEST_GRAPH, LARGEST_GRAPH
from archlang.errors import Source, Span
from archlang.graph import operations
from archlang.graph.facts import QUANTITIES, Costs, LinearMap, Record
from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.types import Dim, Type
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol

_Value = TypeVar("_Value")
_BARE = re.compile(r"[A-Za-z_][\w.]*")
# Brackets, and the texts and comments that may contain some.
_BRACKETS = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'[^\']*\'|#[^\n]*|[()\[\]{}]')
# A place in a program, behind a value.
_ORIGIN = re.compile(r"  # (\S.{0,300}:\d+:\d+)$")
# Last sizes that the text of a type omits.
_OMITTED = {"map": 1, "chunks": 0}
_NOT_BARE = ("true", "false", "inf", "nan")
_OPERATIONS: Mapping[str, Any] = {  # Any: members of an enum, and dataclasses with different facts
    operation.mnemonic: operation
    for operation in (
        *operations.Arithmetic,
        operations.Call,
        operations.Product,
        operations.Apply,
        operations.Literal,
        operations.Loss,
        operations.Part,
        operations.Repeat,
        operations.Stack,
        operations.Halting,
        operations.Scan,
        operations.Experts,
        operations.Gradient,
    )
}


class _GraphSpan(Span):
    """A span of the text of a graph. It is shown as the place in the program that the comment of its line names."""

    def __str__(self) -> str:
        comment = _ORIGIN.search(self.source.line(self.line))
        return comment[1] if comment else f"{self.source.path}:{self.line}:{self.column}"


def print_graph(graph: Graph) -> str:
    """Returns the text of a graph. A comment after each value names its place in the program; it is not parsed."""
    lines = [f"graph {graph.name}", ""]
    lines += [_instance(instance) for instance in graph.instances.values()]
    if graph.instances:
        lines.append("")
    lines += _region(graph.region, "")
    return "\n".join(lines) + "\n"


def _instance(instance: Instance) -> str:
    text = f"instance @{instance.path}: {instance.block}{_attributes(instance.statics)}"
    if instance.features:
        text += f"({', '.join(f'{name} = {size}' for name, size in instance.features.items())})"
    if instance.lengths:
        text += f" lengths {_names(instance.lengths)}"
    if instance.axes:
        text += " axes " + " ".join(_names(axes) for axes in instance.axes)
    if instance.reads:
        text += f" reads {_names(instance.reads)}"
    if instance.caveats:
        text += f" caveats {_names(instance.caveats)}"
    costs = [(name, getattr(instance.costs, name)) for name in QUANTITIES]
    if any(cost is not None for _, cost in costs):
        text += f" costs ({', '.join(f'{name} = {cost}' for name, cost in costs if cost is not None)})"
    if instance.maps:
        text += f" maps ({', '.join(f'{map_.name}({map_.input}) = {map_.width}' for map_ in instance.maps)})"
    if instance.records:
        records = (f"{own.kind}({own.input})" if own.input is not None else own.kind for own in instance.records)
        text += f" records ({', '.join(records)})"
    if instance.even is not None:
        text += f" even {instance.even}"
    text += " grows" * instance.grows + " pure" * instance.pure + " per_position" * instance.per_position
    return text + f" {json.dumps(instance.python)}" + _origin(instance.span)


def _names(names: Iterable[str]) -> str:
    return f"({', '.join(name or '-' for name in names)})"


def _origin(span: Span | None) -> str:
    return f"  # {span}" if span is not None else ""


def _region(region: Region, indent: str) -> Iterator[str]:
    for value in region.inputs:
        yield f"{indent}input {_label(value.id, value.name)}: {value.type}"
    for node in region.nodes:
        yield from _node(node, indent)
    yield f"{indent}return {', '.join(region.results)}".rstrip()


def _label(identity: str, name: str) -> str:
    return f"{identity} {name}" if name else identity


def _node(node: Node, indent: str) -> Iterator[str]:
    attributes = _attributes_of(node.operation)
    path = f" @{attributes.pop('instance')}" if "instance" in attributes else ""
    types = ", ".join(map(str, node.types)) or "()"
    head = f"{indent}{_label(node.id, node.name)}: {types} = {node.operation.mnemonic}{path}{_attributes(attributes)}"
    head += f"({', '.join(node.inputs)})"
    for index, region in enumerate(node.regions):
        yield ("} {" if index else f"{head} {{") + ("" if index else _origin(node.span))
        yield from _region(region, indent + "    ")
    yield f"{indent}}}" if node.regions else head + _origin(node.span)


def _attributes_of(operation: operations.Operation) -> dict[str, StaticValue]:
    match operation:
        case operations.Arithmetic():
            return {}
        case operations.Call(instance=instance, products=products):
            return {"instance": instance, **({"given": products} if products else {})}
    # A fact that a graph of an earlier version lacks is written only where it has another value than its default.
    facts = {fact: getattr(operation, fact.name) for fact in fields(operation) if fact.compare}
    return {fact.name: value for fact, value in facts.items() if value != fact.default}


def _operation(mnemonic: str, attributes: Mapping[str, StaticValue]) -> operations.Operation:
    """Returns the operation of this name with these facts.

    Raises:
        ValueError: there is no such operation, or these are not its facts."""
    if mnemonic not in _OPERATIONS:
        raise ValueError(f"graph text: {mnemonic} is no operation")
    operation = _OPERATIONS[mnemonic]
    facts = dict(attributes)
    if operation is operations.Call:
        facts["products"] = facts.pop("given", ())
    # What does not make operations differ has no text.
    declared = (
        [] if isinstance(operation, operations.Arithmetic) else [fact for fact in fields(operation) if fact.compare]
    )
    expected = [fact.name for fact in declared]
    required = {fact.name for fact in declared if fact.default is MISSING}
    if not required <= set(facts) <= set(expected):
        raise ValueError(f"graph text: {mnemonic} has attributes {sorted(facts)}, not {sorted(expected)}")
    if isinstance(operation, operations.Arithmetic):
        return operation
    types = get_type_hints(operation)
    for name, value in facts.items():
        kind = tuple if get_origin(types[name]) is tuple else types[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):  # `int | None` too
            raise ValueError(f"graph text: {mnemonic} has {name} = {value!r}")
    result: operations.Operation = operation(**facts)
    return result


def _attributes(attributes: Mapping[str, StaticValue]) -> str:
    return f"[{', '.join(f'{name} = {_value(value)}' for name, value in attributes.items())}]" if attributes else ""


def _value(value: StaticValue) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value)
        case Symbol(text=text):
            return text if _BARE.fullmatch(text) and text not in _NOT_BARE else f"'{text}'"
        case InstanceOf(path=path):
            return f"@{path}"
        case tuple():
            return f"({', '.join(map(_value, value))})"
    return str(value)  # int, Interval; a float's str reads back exactly


def parse_graph(text: str) -> Graph:
    """Returns the graph of a text. Its spans point into the text.

    Raises:
        ValueError: the text is not that of a graph, or exceeds a limit; the message has the line of a syntax error."""
    if not text.strip():
        raise ValueError("graph text: it is empty")
    if len(text) > LARGEST_GRAPH:
        raise ValueError(f"graph text: it has more than {LARGEST_GRAPH:,} characters")
    _check_depth(text)
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise ValueError(f"graph text, line {error.line}:\n{error.get_context(text)}") from None
    try:
        return _Build(Source("graph", text)).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, ValueError):
            raise error.orig_exc from None
        # A value that fits the grammar but not its rule, such as an interval whose low end is missing.
        raise ValueError(f"graph text: {error.rule}: {error.orig_exc}") from None


def _check_depth(text: str) -> None:
    """Raises:
    ValueError: brackets are nested more than `DEEPEST_GRAPH` levels deep."""
    depth = 0
    for part in _BRACKETS.finditer(text):
        bracket = part[0]
        if len(bracket) == 1:
            depth += 1 if bracket in "([{" else -1
        if depth > DEEPEST_GRAPH:
            line = text.count("\n", 0, part.start()) + 1
            raise ValueError(f"graph text, line {line}: it is nested more than {DEEPEST_GRAPH} levels deep")


@cache
def _grammar() -> Lark:
    return Lark.open("graph.lark", rel_to=__file__, parser="lalr", propagate_positions=True, maybe_placeholders=True)


@v_args(inline=True)
class _Build(Transformer[Token, Graph]):
    """Builds the values bottom up, with a method for each rule of the grammar."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def start(self, name: Token, *rest: Instance | Region) -> Graph:
        *instances, region = rest
        assert isinstance(region, Region)
        by_path = {instance.path: instance for instance in instances if isinstance(instance, Instance)}
        return Graph(str(name), region, by_path)

    def _span(self, meta: Meta) -> Span:
        """The first line that a rule covers: a loop is long."""
        end = self._source.text.find("\n", meta.start_pos, meta.end_pos)
        return _GraphSpan(self._source, meta.start_pos, meta.end_pos if end < 0 else end)

    # Instances

    @v_args(inline=True, meta=True)
    def instance(
        self,
        meta: Meta,
        path: Token,
        block: Token,
        statics: Mapping[str, StaticValue] | None,
        features: Mapping[str, Dim] | None,
        *rest: tuple[str, Any] | Token,  # Any: fields of `Instance` of different types
    ) -> Instance:
        *clauses, python = rest
        assert isinstance(python, Token)
        facts: dict[str, Any] = dict(clause for clause in clauses if isinstance(clause, tuple))
        return Instance(
            path[1:], str(block), json.loads(python), statics or {}, features or {}, span=self._span(meta), **facts
        )

    def mapping(self, *pairs: tuple[str, _Value] | None) -> Mapping[str, _Value]:
        return dict(pair for pair in pairs if pair)

    def pair(self, name: Token, value: _Value) -> tuple[str, _Value]:
        return str(name), value

    # The clauses of an instance: the name and the value of a field.

    def field_of_parts(self, name: Token, *parts: _Value) -> tuple[str, tuple[_Value, ...]]:
        return str(name), parts

    def costs(self, costs: Mapping[str, Dim]) -> tuple[str, Costs]:
        facts: dict[str, Any] = {  # Any: numbers and polynomials
            name: cost.constant if name in ("parameters", "nonzero") else cost for name, cost in costs.items()
        }
        return "costs", Costs(**facts)

    def linear_map(self, name: Token, place: Token, width: Token) -> LinearMap:
        return LinearMap(str(name), int(place), int(width))

    def record(self, kind: Token, place: Token | None) -> Record:
        return Record(str(kind), None if place is None else int(place))

    def even(self, parts: Token) -> tuple[str, int]:
        return "even", int(parts)

    def names(self, *names: Token | None) -> tuple[str, ...]:
        return tuple("" if name == "-" else str(name) for name in names if name)

    def flag(self, flag: Token) -> tuple[str, bool]:
        return str(flag), True

    # Regions

    def region(self, *parts: Input | Node | tuple[str, ...]) -> Region:
        *body, results = parts
        assert isinstance(results, tuple)
        inputs = tuple(part for part in body if isinstance(part, Input))
        return Region(inputs, tuple(part for part in body if isinstance(part, Node)), results)

    def input(self, identity: Token, name: Token | None, kind: Type) -> Input:
        return Input(str(identity), kind, str(name or ""))

    @v_args(inline=True, meta=True)
    def node(
        self,
        meta: Meta,
        identity: Token,
        name: Token | None,
        types: tuple[Type, ...],
        mnemonic: Token,
        path: Token | None,
        attributes: Mapping[str, StaticValue] | None,
        inputs: tuple[str, ...],
        *regions: Region,
    ) -> Node:
        instance: Mapping[str, StaticValue] = {"instance": path[1:]} if path else {}
        operation = _operation(str(mnemonic), {**instance, **(attributes or {})})
        return Node(str(identity), operation, inputs, types, self._span(meta), str(name or ""), regions)

    def ids(self, *ids: Token | None) -> tuple[str, ...]:
        return tuple(str(identity) for identity in ids if identity)

    # Types

    def types(self, *types: Type) -> tuple[Type, ...]:
        return types

    def type(self, name: Token, *sizes: Dim | None) -> Type:
        dims = tuple(size for size in sizes if size is not None)
        if len(dims) == 2 and str(name) in _OMITTED:
            dims = (*dims, Dim.of(_OMITTED[str(name)]))
        return Type("probs" if name == "prob" and dims else str(name), dims)

    def dim(self, sign: Token | None, first: Dim, *rest: Token | Dim) -> Dim:
        total = -first if sign == "-" else first
        for operator, term in zip(rest[::2], rest[1::2], strict=True):
            assert isinstance(term, Dim)
            total = total - term if operator == "-" else total + term
        return total

    def term(self, *factors: Token | Dim) -> Dim:
        product = Dim.of(1)
        for factor in factors:
            if not isinstance(factor, Dim):
                factor = Dim.of(int(factor) if factor.isdigit() else str(factor))
            product = product * factor
        return product

    def quotient(self, dividend: Dim, divisor: Token) -> Dim:
        return dividend.over(int(divisor))

    # Statics

    def boolean(self, word: Token) -> StaticValue:
        return bool(word == "true")

    def number(self, number: Token) -> StaticValue:
        return int(number) if number.lstrip("-").isdigit() else float(number)

    def interval(self, interval: Token) -> StaticValue:
        low, high = interval.split("..")
        return Interval(int(low), int(high))

    def string(self, string: Token) -> StaticValue:
        text: str = json.loads(string)
        return text

    def symbol(self, text: Token) -> StaticValue:
        return Symbol(str(text))

    def quoted(self, text: Token) -> StaticValue:
        return Symbol(text[1:-1])

    def instance_of(self, path: Token) -> StaticValue:
        return InstanceOf(path[1:])

    def tuple_(self, *values: StaticValue | None) -> StaticValue:
        return tuple(value for value in values if value is not None)
