"""Every signature of the library agrees with its class, and is documented."""

import importlib
import inspect
from collections.abc import Callable, Iterator

import pytest
from torch import nn

from archlang.backend.runtime.halting import HaltingBlock
from archlang.resolve import library
from archlang.syntax.tree import Extern, InputParameter, Name
from archlang.types import CONSTRUCTORS, Axis

EXTERNS = [item for item in library.blocks().values() if isinstance(item, Extern)]
each_extern = pytest.mark.parametrize("extern", EXTERNS, ids=[item.name for item in EXTERNS])


def behind(extern: Extern) -> type[nn.Module]:
    module, name = extern.python.split(":")
    block: type = getattr(importlib.import_module(module), name)
    assert issubclass(block, nn.Module)
    return block


def sizes(extern: Extern, axis: Axis) -> Iterator[str]:
    """Returns the names of the lengths or features of the inputs, without statics."""
    statics = {static.name for static in extern.signature.statics}
    for parameter in extern.signature.inputs:
        if parameter.variadic:
            continue
        axes = (Axis.FEATURE,) if parameter.type.name == "data" else CONSTRUCTORS[parameter.type.name]
        for size, size_axis in zip(parameter.type.dimensions, axes, strict=True):
            if size_axis is axis and isinstance(size, Name) and size.text not in statics:
                yield size.text


def named(function: Callable[..., object], *kinds: inspect._ParameterKind) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    return {name: parameter for name, parameter in parameters.items() if name != "self" and parameter.kind in kinds}


@each_extern
def test_the_constructor_takes_the_statics_and_the_feature_sizes(extern: Extern) -> None:
    statics = {static.name for static in extern.signature.statics}
    expected = statics | set(sizes(extern, Axis.FEATURE))
    constructor = behind(extern).__init__
    by_name = named(constructor, inspect.Parameter.KEYWORD_ONLY)
    needed = {name for name, parameter in by_name.items() if parameter.default is inspect.Parameter.empty}
    assert not named(constructor, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    takes_others = named(constructor, inspect.Parameter.VAR_KEYWORD)
    assert needed <= expected if takes_others else needed == expected


@each_extern
def test_forward_takes_the_inputs_and_a_mask_for_each_length(extern: Extern) -> None:
    block = behind(extern)
    if issubclass(block, HaltingBlock):
        return
    inputs = named(block.forward, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    expected = [parameter.name for parameter in extern.signature.inputs] or ["batch"]
    assert list(inputs) == expected
    masks = named(block.forward, inspect.Parameter.KEYWORD_ONLY)
    masks.pop("products", None)  # products of the block's linear maps, if they are computed elsewhere
    first_row = masks.pop("first_row", None)  # of a block that computes by rows
    assert first_row is None or first_row.default == 0
    is_lower = masks.pop("is_lower", None)  # such a block may get a map that is 0 after the diagonal
    assert is_lower is None or is_lower.default is False
    of_lengths = {f"mask_{name}" for name in sizes(extern, Axis.LENGTH)}
    takes_others = named(block.forward, inspect.Parameter.VAR_KEYWORD)
    assert set(masks) <= of_lengths if takes_others else set(masks) == of_lengths
    assert all(mask.default is None for mask in masks.values())


@each_extern
def test_documentation_starts_with_one_sentence(extern: Extern) -> None:
    first, *rest = extern.documentation
    assert first.strip().endswith(".")
    assert not rest or not rest[0].strip()


@each_extern
def test_every_input_has_a_reads_clause(extern: Extern) -> None:
    assert [clause.input for clause in extern.reads] == [parameter.name for parameter in extern.signature.inputs]


@each_extern
def test_a_symbol_lists_its_values(extern: Extern) -> None:
    conditions = [str(condition) for condition in extern.signature.where]
    for static in extern.signature.statics:
        if static.kind == "symbol":
            assert any(f"'{static.name}'" in condition and "operator='in'" in condition for condition in conditions)


def test_inputs_have_types_that_exist() -> None:
    inputs: list[InputParameter] = [parameter for extern in EXTERNS for parameter in extern.signature.inputs]
    assert {parameter.type.name for parameter in inputs} <= {*CONSTRUCTORS, "data"}
