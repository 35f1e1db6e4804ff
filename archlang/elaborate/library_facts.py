"""Stored graphs are held to the signatures of the library's blocks, which also give what the graphs lack."""

from dataclasses import replace

from archlang.elaborate.binding import Binding
from archlang.elaborate.facts import Facts
from archlang.elaborate.static_arguments import evaluated, parameter_kind, plain
from archlang.errors import Diagnostic
from archlang.graph.graph import Graph, Instance
from archlang.resolve import library
from archlang.resolve.resolve import Declaration, prelude
from archlang.resolve.values import MISFIT, BlockValue, Bound, InstanceValue, Unknown, Value, coerce
from archlang.syntax.tree import Extern
from archlang.types.statics import InstanceOf, StaticValue


def with_library_facts(graph: Graph) -> Graph:
    """Returns a graph in which the library's instances have their acts, which texts of graphs do not have, and the
    defaults of statics that are newer than the graph.

    Raises:
        ValueError: a static of a block of the library is not of its kind, or breaks a condition of the signature."""
    instances = {path: _checked(instance, graph) for path, instance in graph.instances.items()}
    return replace(graph, instances=instances)


def _checked(instance: Instance, graph: Graph) -> Instance:
    declaration = _declaration(instance)
    if declaration is None:
        return instance
    item = declaration.item
    assert isinstance(item, Extern)
    problems: list[Diagnostic] = []
    binding = Binding(
        declaration, item.name_span, _statics(instance, graph), problems.append,
        sizes={name: Bound(size, None) for name, size in instance.features.items()}, lengths=set(instance.lengths),
    )  # fmt: skip
    for name, bound in _statics(instance, graph).items():
        parameter = binding.parameters.get(name)
        kind = None if parameter is None else parameter_kind(parameter, declaration.file) or ""
        is_other_block = isinstance(bound.value, Unknown) and kind != "block"
        if kind is None or is_other_block or coerce(bound.value, kind) is MISFIT:
            raise ValueError(f"@{instance.path}: `{item.name}` has no static {name} = {instance.statics[name]!r}")
    binding.finish()
    if problems:
        raise ValueError(f"@{instance.path}: {problems[0].message}")
    defaults = {name: value for name, bound in binding.statics.items() if (value := plain(bound.value)) is not None}
    acts = Facts(binding, item).acts()
    return replace(instance, python=item.python, statics={**defaults, **instance.statics}, acts=acts)


def _declaration(instance: Instance) -> Declaration | None:
    """The signature of an instance of a library block, by its name or its class; None for other instances."""
    item = library.block(instance.block) or (library.outside_prelude(instance.block) or ("", None))[1]
    own = _class(instance.python)
    if instance.python.startswith("archlang.") and (not isinstance(item, Extern) or _class(item.python) != own):
        externs = (item for item in library.blocks().values() if isinstance(item, Extern))
        item = next((extern for extern in externs if _class(extern.python) == own), None)
    return prelude(item) if isinstance(item, Extern) and _class(item.python) == own else None


def _class(python: str) -> str:
    """The class, without the file if it is one of the library's, whose classes have been in other files."""
    return python.rpartition(":")[2] if python.startswith("archlang.blocks.") else python


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
        case tuple():
            return tuple(_value(item, graph) for item in value)
    return evaluated(value, "file")
