"""The facts of the library's blocks for graphs that were written before signatures stated them."""

from __future__ import annotations

from dataclasses import replace

from archlang.elaborate.binding import Binding
from archlang.elaborate.facts import Facts
from archlang.graph.facts import UNKNOWN
from archlang.graph.graph import Graph, Instance
from archlang.names import library
from archlang.names.resolve import Declaration, prelude
from archlang.names.values import BlockValue, Bound, InstanceValue, Unknown, Value
from archlang.syntax.tree import Extern
from archlang.types import Dim
from archlang.types.statics import InstanceOf, StaticValue


def with_library_facts(graph: Graph) -> Graph:
    """Returns a graph in which the library's instances without any fact have those of their signatures.

    Run folders of older versions hold such graphs."""
    instances = {path: _with_facts(instance, graph) for path, instance in graph.instances.items()}
    return replace(graph, instances=instances)


def _with_facts(instance: Instance, graph: Graph) -> Instance:
    declaration = _declaration(instance)
    if (
        declaration is None
        or instance.costs != UNKNOWN
        or instance.maps
        or instance.records
        or instance.even is not None
    ):
        return instance
    item = declaration.item
    assert isinstance(item, Extern)
    binding = Binding(
        declaration, item.name_span, _statics(instance, graph), lambda mistake: None, lambda call, target: None,
        sizes={name: Bound(size, None) for name, size in instance.features.items()}, lengths=set(instance.lengths),
    )  # fmt: skip
    facts = Facts(binding, item)
    return replace(instance, costs=facts.costs(), maps=facts.maps(), records=facts.records(), even=facts.even())


def _declaration(instance: Instance) -> Declaration | None:
    """The signature of an instance of a library block; None for other instances."""
    item = library.block(instance.block)
    return prelude(item) if isinstance(item, Extern) and item.python == instance.python else None


def _statics(instance: Instance, graph: Graph) -> dict[str, Bound]:
    return {name: Bound(_value(value, graph), None) for name, value in instance.statics.items()}


def _value(value: StaticValue, graph: Graph) -> Value:
    match value:
        case InstanceOf(path=path):
            named = graph.instances.get(path)
            declaration = None if named is None else _declaration(named)
            if named is None or declaration is None:
                return Unknown("block")
            block = BlockValue(declaration, _statics(named, graph))
            return InstanceValue(path, block, path, declaration.span, dict(named.features))
        case bool():
            return value
        case int():
            return Dim.of(value)
        case tuple():
            return tuple(_value(item, graph) for item in value)
    return value
