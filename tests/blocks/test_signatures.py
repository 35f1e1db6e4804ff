"""Every signature of the library is documented; test_examples calls each class by its signature."""

import pytest

from archlang.resolve import library
from archlang.syntax.tree import Extern, InputParameter
from archlang.types import CONSTRUCTORS

EXTERNS = [item for item in library.blocks().values() if isinstance(item, Extern)]
each_extern = pytest.mark.parametrize("extern", EXTERNS, ids=[item.name for item in EXTERNS])


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
