"""Instances for the statics of type `block`, such as the `embed` whose table `unembed[table]` shares."""

from collections.abc import Iterator
from dataclasses import replace
from typing import get_type_hints

from archlang.backend.lower.instances import find_class
from archlang.contracts.cases import Case, Table, cases, feature_names
from archlang.elaborate.static_arguments import parameter_kind
from archlang.names import library
from archlang.names.resolve import Declaration, prelude
from archlang.names.values import BlockValue, Bound, InstanceValue, Value
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.syntax.tree import Extern, Name, StaticParameter
from archlang.syntax.walk import walk
from archlang.types import Dim
from archlang.types.statics import StaticValue, Symbol


def tables(declaration: Declaration, plugins: Plugins = NO_PLUGINS) -> dict[str, Table] | str:
    """Returns a table for each static of type `block`; if one has no table, the name of that static. The class of the
    block may be in a plugin."""
    by_static: dict[str, Table] = {}
    for parameter in declaration.item.signature.statics:
        if parameter_kind(parameter, declaration.file) == "block":
            table = next(_candidates(declaration, parameter, plugins), None)
            if table is None:
                return parameter.name
            by_static[parameter.name] = table
    return by_static


def _candidates(declaration: Declaration, static: StaticParameter, plugins: Plugins) -> Iterator[Table]:
    """Yields instances with the attributes that the signature names, such as `table.vocab`; first the instances of the
    class in the annotation of the constructor."""
    attributes = {
        node.parts[1]
        for node in walk(declaration.item.signature)
        if isinstance(node, Name) and len(node.parts) == 2 and node.parts[0] == static.name
    }
    expected_class = _annotation(declaration, static.name, plugins)
    externs = [own for own in declaration.file.own.values() if isinstance(own.item, Extern)]
    externs += [prelude(item) for item in library.blocks().values() if isinstance(item, Extern)]
    externs.sort(key=lambda extern: getattr(extern.item, "python", "").partition(":")[2] != expected_class)
    for extern in externs:
        statics = extern.item.signature.statics
        kinds = {parameter_kind(parameter, extern.file) for parameter in statics}
        if extern.name == declaration.name or "block" in kinds:
            continue
        if not attributes <= {*(parameter.name for parameter in statics), *feature_names(extern)}:
            continue  # before the search for a case, which takes long
        case = next(iter(cases(extern, {})), None)
        if case is not None:
            yield _table(static.name, case)


def _annotation(declaration: Declaration, parameter: str, plugins: Plugins) -> str:
    """Returns the name of the class in the annotation of a constructor's parameter; "" if there is none."""
    python = getattr(declaration.item, "python", "")
    try:
        constructor = find_class(python, plugins, declaration.name).__init__  # type: ignore[misc]  # of any class
        return str(getattr(get_type_hints(constructor).get(parameter), "__name__", ""))
    except Exception:  # importing the module or evaluating its annotations may raise any error
        return ""


def _table(name: str, case: Case) -> Table:
    settled = {key: Bound(_value(value), None) for key, value in case.instance.statics.items()}
    value = InstanceValue(name, BlockValue(case.declaration, settled), name, case.declaration.span)
    value.features.update(case.instance.features)
    return Table(value, replace(case.instance, path=name))


def _value(value: StaticValue) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return Dim.of(value)
    return value if isinstance(value, bool | float | Symbol) else None
