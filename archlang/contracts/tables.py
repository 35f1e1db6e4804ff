"""Instances for the statics of a block that are blocks, as `unembed[table]` holds the `embed` whose table it reads."""

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import get_type_hints

from archlang.contracts.cases import Case, Table, cases
from archlang.elaborate.static_arguments import parameter_kind
from archlang.names import library
from archlang.names.resolve import Declaration, prelude
from archlang.names.values import BlockValue, Bound, InstanceValue, Value
from archlang.syntax.tree import Extern, Name, StaticParameter
from archlang.syntax.walk import walk
from archlang.types import Dim
from archlang.types.statics import StaticValue, Symbol


def tables(declaration: Declaration) -> dict[str, Table] | str:
    """A table for each static that is a block; where there is none, the name of the static."""
    found: dict[str, Table] = {}
    for parameter in declaration.item.signature.statics:
        if parameter_kind(parameter, declaration.file) == "block":
            table = next(_candidates(declaration, parameter), None)
            if table is None:
                return parameter.name
            found[parameter.name] = table
    return found


def _candidates(declaration: Declaration, static: StaticParameter) -> Iterator[Table]:
    """Instances that have the attributes that the signature names, as `table.vocab`. Those of the class that the
    constructor asks for come first."""
    attributes = {
        node.parts[1]
        for node in walk(declaration.item.signature)
        if isinstance(node, Name) and len(node.parts) == 2 and node.parts[0] == static.name
    }
    wanted = _annotation(declaration, static.name)
    externs = [one for one in declaration.file.own.values() if isinstance(one.item, Extern)]
    externs += [prelude(item) for item in library.blocks().values() if isinstance(item, Extern)]
    externs.sort(key=lambda one: getattr(one.item, "python", "").partition(":")[2] != wanted)
    for other in externs:
        kinds = {parameter_kind(one, other.file) for one in other.item.signature.statics}
        if other.name == declaration.name or "block" in kinds:
            continue
        case = next(iter(cases(other, {})), None)
        if case is not None and attributes <= {*case.instance.statics, *case.instance.features}:
            yield _table(static.name, case)


def _annotation(declaration: Declaration, parameter: str) -> str:
    """The name of the class that a block's constructor asks for; "" if that is not known."""
    module, _, name = getattr(declaration.item, "python", "").partition(":")
    try:
        constructor = getattr(importlib.import_module(module), name).__init__
        return str(getattr(get_type_hints(constructor).get(parameter), "__name__", ""))
    except Exception:  # the module and its annotations may hold anything
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
