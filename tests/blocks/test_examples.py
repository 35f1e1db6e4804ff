"""The documentation of every block has an example that checks, builds, and runs forward and backward."""

from pathlib import Path
from typing import Any

import pytest
import torch

import archlang
from archlang.plan.check import check_text
from archlang.resolve import library
from archlang.syntax.tree import Extern
from tests.extras import skip_without_extra
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
    skip_without_extra(BLOCKS[name].name)
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
