"""The documentation of every block has an example that checks, builds, and runs forward and backward."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import archlang
from archlang.plan.check import check_text
from archlang.resolve import library
from archlang.syntax.tree import Extern
from tests.extras import skip_without_extra

BLOCKS = {name: item for name, item in library.blocks().items() if isinstance(item, Extern)}
BATCH, VOCAB, WIDTH = 3, 7, 16
LENGTHS = {"n": 6, "m": 5, "t": 4}


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
    signature = text[text.index("(") + 1 : text.index(") ->")]
    fields: list[Tensor] = []
    lengths: dict[str, Tensor] = {}
    for parameter in signature.split(", "):
        if ": " not in parameter:
            continue  # the second size of a type
        field, _, type_ = parameter.partition(": ")
        length = LENGTHS.get(type_.partition("[")[2][:1], 0)
        if type_.startswith("tokens"):
            fields.append(torch.randint(0, VOCAB, (BATCH, length)))
        elif type_.startswith("seq"):
            fields.append(torch.randn(BATCH, length, WIDTH, requires_grad=True))
        else:
            fields.append(torch.randn(BATCH, WIDTH, requires_grad=True))
        if length:
            lengths[field] = torch.tensor([length, length - 1, 1])
    sizes = {size: WIDTH for size in ("d", "e") if f" {size}]" in signature or f"[{size}]" in signature}
    statics: dict[str, Any] = {**sizes, "vocab": VOCAB}  # Any: as statics are
    module = archlang.load(path, "example", **statics)
    module.eval()
    result = module(*fields, lengths=lengths or None)
    assert len(result) == BATCH
    assert result.isfinite().all()
    leaves = [*module.parameters(), *(field for field in fields if field.requires_grad)]
    gradients = torch.autograd.grad(result.square().sum() + module.ponder, leaves, allow_unused=True)
    assert any(gradient is not None and bool(gradient.isfinite().all()) for gradient in gradients)
