"""The documentation of every block begins with a sentence, and has an example that runs forward and backward."""

from pathlib import Path
from typing import Any

import pytest
import torch

import archlang
from archlang.plan.check import check_text
from archlang.resolve import library
from archlang.syntax.tree import Extern, InputParameter
from archlang.types import CONSTRUCTORS
from tests.shipped_models import drawn_fields

BLOCKS = {name: item for name, item in library.blocks().items() if isinstance(item, Extern)}


def example(documentation: tuple[str, ...]) -> str:
    """Returns the indented lines after `Example:`."""
    start = documentation.index("Example:") + 1
    lines = []
    for line in documentation[start:]:
        if line and not line.startswith("    "):
            break
        lines.append(line.removeprefix("    "))
    return "\n".join(lines).strip() + "\n"


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_has_an_example_that_has_no_mistake_and_runs_forward_and_backward(name: str, tmp_path: Path) -> None:
    text = example(BLOCKS[name].documentation)
    assert BLOCKS[name].name in text
    assert check_text(text) == ()
    path = tmp_path / "example.arch"
    path.write_text(text, encoding="utf-8")
    signature = text[text.index("(") : text.index(" ->")]
    sizes = [size for size in "de" if f" {size}]" in signature or f"[{size}]" in signature]
    statics: dict[str, Any] = {"vocab": 7, **dict.fromkeys(sizes, 16)}  # Any: as statics are
    module = archlang.load(path, "example", **statics).eval()
    fields = [value.requires_grad_() if value.is_floating_point() else value for value in drawn_fields(module)]
    result = module(*fields)
    assert result.isfinite().all()
    leaves = [*module.parameters(), *(field for field in fields if field.requires_grad)]
    gradients = torch.autograd.grad(result.square().sum() + module.ponder, leaves, allow_unused=True)
    assert any(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients)


each_extern = pytest.mark.parametrize("extern", BLOCKS.values(), ids=BLOCKS)


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
    inputs: list[InputParameter] = [parameter for extern in BLOCKS.values() for parameter in extern.signature.inputs]
    assert {parameter.type.name for parameter in inputs} <= {*CONSTRUCTORS, "data"}
