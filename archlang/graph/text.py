"""A typed graph as text that people can read and tests can write: `parse_graph(print_graph(graph)) == graph`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, get_origin, get_type_hints

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedInput, VisitError
from lark.tree import Meta

from archlang.graph.facts import QUANTITIES, UNKNOWN, Costs, LinearMap, Record
from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.operations import (
    Apply,
    Arithmetic,
    Call,
    Halting,
    Join,
    Literal,
    MapPath,
    Operation,
    Part,
    Repeat,
    Scan,
    Stack,
)
from archlang.source import Source, Span
from archlang.types import Dim, Type
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol

_BARE = re.compile(r"[A-Za-z_][\w.]*")
_NOT_BARE = ("true", "false", "inf", "nan")
_OPERATIONS: Mapping[str, Any] = {  # Any: members of an enum, and dataclasses with different facts
    operation.mnemonic: operation
    for operation in (*Arithmetic, Call, Join, Apply, Literal, Part, Repeat, Stack, Halting, Scan)
}


def print_graph(graph: Graph) -> str:
    """The text of a graph. Where a value comes from stands behind it as a comment, which is not read back."""
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
        text += f" maps ({', '.join(f'{one.name}({one.input}) = {one.width}' for one in instance.maps)})"
    if instance.records:
        text += f" records ({', '.join(map(_record, instance.records))})"
    if instance.even is not None:
        text += f" even {instance.even}"
    text += " grows" * instance.grows + " pure" * instance.pure + " per_position" * instance.per_position
    return text + f" {json.dumps(instance.python)}" + _origin(instance.span)


def _record(record: Record) -> str:
    return record.kind if record.input is None else f"{record.kind}({record.input})"


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


def _attributes_of(operation: Operation) -> dict[str, StaticValue]:
    """The facts of an operation by their names in the text."""
    match operation:
        case Arithmetic():
            return {}
        case Call(instance=instance, products=products):
            return {"instance": instance, **({"given": products} if products else {})}
        case Join(maps=maps):
            return {"maps": tuple(map(str, maps))}
    return {fact.name: getattr(operation, fact.name) for fact in fields(operation)}


def _operation(mnemonic: str, attributes: Mapping[str, StaticValue]) -> Operation:
    """The operation of this name with these facts.

    Raises:
        ValueError: there is no such operation, or these are not its facts."""
    if mnemonic not in _OPERATIONS:
        raise ValueError(f"graph text: {mnemonic} is no operation")
    operation = _OPERATIONS[mnemonic]
    facts = dict(attributes)
    if operation is Call:
        facts["products"] = facts.pop("given", ())
    expected = [] if isinstance(operation, Arithmetic) else [fact.name for fact in fields(operation)]
    if sorted(facts) != sorted(expected):
        raise ValueError(f"graph text: {mnemonic} has attributes {sorted(facts)}, not {sorted(expected)}")
    if isinstance(operation, Arithmetic):
        return operation
    types = get_type_hints(operation)
    for name, value in facts.items():
        kind = tuple if get_origin(types[name]) is tuple else types[name]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ValueError(f"graph text: {mnemonic} has {name} = {value!r}")
    if isinstance(maps := facts.get("maps"), tuple):
        facts["maps"] = tuple(MapPath(*str(path).rpartition(".")[::2]) for path in maps)
    made: Operation = operation(**facts)
    return made


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
    """The graph that a text describes. Its spans point into the text.

    Raises:
        ValueError: the text is not that of a graph."""
    try:
        tree = _grammar().parse(text)
    except UnexpectedInput as error:
        raise ValueError(f"graph text, line {error.line}:\n{error.get_context(text)}") from None
    try:
        return _Build(Source("<graph>", text)).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None


@cache
def _grammar() -> Lark:
    return Lark.open("graph.lark", rel_to=__file__, parser="lalr", propagate_positions=True, maybe_placeholders=True)


@dataclass(frozen=True)
class _Lengths:
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Axes:
    names: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class _Reads:
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Caveats:
    names: tuple[str, ...]


@dataclass(frozen=True)
class _Maps:
    maps: tuple[LinearMap, ...]


@dataclass(frozen=True)
class _Records:
    records: tuple[Record, ...]


@dataclass(frozen=True)
class _Even:
    parts: int


@v_args(inline=True)
class _Build(Transformer[Token, Graph]):
    """Makes the values bottom up, one method for each rule of the grammar."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self._source = source

    def start(self, name: Token, *rest: Instance | Region) -> Graph:
        *instances, region = rest
        assert isinstance(region, Region)
        return Graph(str(name), region, {one.path: one for one in instances if isinstance(one, Instance)})

    def _span(self, meta: Meta) -> Span:
        """The first line of what a rule covers: a loop is long."""
        end = self._source.text.find("\n", meta.start_pos, meta.end_pos)
        return Span(self._source, meta.start_pos, meta.end_pos if end < 0 else end)

    # Instances

    @v_args(inline=True, meta=True)
    def instance(
        self,
        meta: Meta,
        path: Token,
        block: Token,
        statics: Mapping[str, StaticValue] | None,
        features: Mapping[str, Dim] | None,
        *rest: _Lengths | _Axes | _Reads | _Caveats | Costs | _Maps | _Records | _Even | Token,
    ) -> Instance:
        python = rest[-1]
        assert isinstance(python, Token)
        return Instance(
            path=path[1:],
            block=str(block),
            python=json.loads(python),
            statics=statics or {},
            features=features or {},
            lengths=next((clause.names for clause in rest if isinstance(clause, _Lengths)), ()),
            grows="grows" in rest[:-1],
            pure="pure" in rest[:-1],
            per_position="per_position" in rest[:-1],
            reads=next((clause.names for clause in rest if isinstance(clause, _Reads)), ()),
            span=self._span(meta),
            axes=next((clause.names for clause in rest if isinstance(clause, _Axes)), ()),
            caveats=next((clause.names for clause in rest if isinstance(clause, _Caveats)), ()),
            costs=next((clause for clause in rest if isinstance(clause, Costs)), UNKNOWN),
            maps=next((clause.maps for clause in rest if isinstance(clause, _Maps)), ()),
            records=next((clause.records for clause in rest if isinstance(clause, _Records)), ()),
            even=next((clause.parts for clause in rest if isinstance(clause, _Even)), None),
        )

    def features(self, *features: tuple[str, Dim] | None) -> Mapping[str, Dim]:
        return dict(feature for feature in features if feature)

    def feature(self, name: Token, size: Dim) -> tuple[str, Dim]:
        return str(name), size

    def lengths(self, names: tuple[str, ...]) -> _Lengths:
        return _Lengths(names)

    def axes(self, *names: tuple[str, ...]) -> _Axes:
        return _Axes(names)

    def reads(self, names: tuple[str, ...]) -> _Reads:
        return _Reads(names)

    def caveats(self, names: tuple[str, ...]) -> _Caveats:
        return _Caveats(names)

    def costs(self, costs: Mapping[str, Dim]) -> Costs:
        parameters = costs.get("parameters")
        return Costs(None if parameters is None else parameters.constant, costs.get("flops"), costs.get("activations"))

    def maps(self, *maps: LinearMap) -> _Maps:
        return _Maps(maps)

    def linear_map(self, name: Token, place: Token, width: Token) -> LinearMap:
        return LinearMap(str(name), int(place), int(width))

    def records(self, *records: Record) -> _Records:
        return _Records(records)

    def record(self, kind: Token, place: Token | None) -> Record:
        return Record(str(kind), None if place is None else int(place))

    def even(self, parts: Token) -> _Even:
        return _Even(int(parts))

    def names(self, *names: Token | None) -> tuple[str, ...]:
        return tuple("" if name == "-" else str(name) for name in names if name)

    def flag(self, flag: Token) -> Token:
        return flag

    # Regions

    def region(self, *parts: Input | Node | tuple[str, ...]) -> Region:
        *body, results = parts
        assert isinstance(results, tuple)
        return Region(
            tuple(one for one in body if isinstance(one, Input)),
            tuple(one for one in body if isinstance(one, Node)),
            results,
        )

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

    def body(self, region: Region) -> Region:
        return region

    def ids(self, *ids: Token | None) -> tuple[str, ...]:
        return tuple(str(one) for one in ids if one)

    # Types

    def types(self, *types: Type) -> tuple[Type, ...]:
        return types

    def type(self, name: Token, *sizes: Dim | None) -> Type:
        dims = tuple(size for size in sizes if size is not None)
        if str(name) == "chunks" and len(dims) == 2:
            dims = (*dims, Dim.of(0))
        return Type("probs" if name == "prob" and dims else str(name), dims)

    def dim(self, sign: Token | None, first: Dim, *rest: Token | Dim) -> Dim:
        total = -first if sign == "-" else first
        for operator, term in zip(rest[::2], rest[1::2], strict=True):
            assert isinstance(term, Dim)
            total = total - term if operator == "-" else total + term
        return total

    def term(self, *factors: Token) -> Dim:
        product = Dim.of(1)
        for factor in factors:
            product = product * Dim.of(int(factor) if factor.isdigit() else str(factor))
        return product

    # Statics

    def attributes(self, *attributes: tuple[str, StaticValue] | None) -> Mapping[str, StaticValue]:
        return dict(attribute for attribute in attributes if attribute)

    def attribute(self, name: Token, value: StaticValue) -> tuple[str, StaticValue]:
        return str(name), value

    def true(self) -> StaticValue:
        return True

    def false(self) -> StaticValue:
        return False

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
