"""Networks with a memory of cells: their sizes in the papers' tables, and free cells against a sorted list."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import archlang
from tests.closeness import same_gradients
from tests.conftest import Compiled
from tests.shipped_models import library_page


def trained(path: Path, model: str, **sizes: Any) -> int:
    """Returns the number of trained weights."""
    module = archlang.load(path, model, **sizes)
    return sum(weight.numel() for name, weight in module.named_parameters() if "fixed_state" not in name)


def sized(folder: Path, use: str, block: str) -> Path:
    """Returns a program with 12 inputs and 10 outputs, as in PANM's tables."""
    path = folder / "sized.arch"
    path.write_text(
        f"use archlang.models.{use}\n"
        f"model m(x: seq[n, 12], blank: seq[t, 12]) -> seq[t, 10] {{\n    return {block}(x, blank)\n}}\n"
    )
    return path


def test_sizes_are_those_of_the_tables_of_panm(tmp_path: Path) -> None:
    ntm = sized(tmp_path, "neural_turing_machine", "turing_answers[10]")
    # The program has norms of its heads' interfaces, 280 weights, which it never uses.
    assert trained(ntm, "m") + 2 * (38 + 102) == 1_221_358
    dnc = sized(tmp_path, "differentiable_neural_computer", "computed_answers[10, form = panm]")
    assert trained(dnc, "m") == 1_218_002


@pytest.mark.parametrize(("vocab", "classes", "embedding", "size"), [(19, 8, 16, 1_303_559), (14, 10, 200, 1_453_841)])
def test_sizes_are_those_of_the_program_of_ndr(vocab: int, classes: int, embedding: int, size: int) -> None:
    # The program's embedding has a row more, for its end token.
    path = library_page("differentiable_neural_computer")
    assert trained(path, "dnc_classifier", vocab=vocab + 1, classes=classes, embedding=embedding) == size


def sorted_allocation(usage: Tensor) -> Tensor:
    """Returns the allocation of Graves et al., 2016, Eq. 1, for usages [slots]."""
    u = [1e-6 + (1 - 1e-6) * number for number in usage]
    product, weights = torch.ones((), dtype=usage.dtype), [torch.zeros(())] * len(u)
    for cell in sorted(range(len(u)), key=lambda cell: (float(u[cell].detach()), cell)):
        weights[cell] = (1 - u[cell]) * product
        product = product * u[cell]
    return torch.stack(weights)


def test_free_cells_are_those_of_a_sorted_list(compiled: Compiled) -> None:
    module = compiled(
        "use archlang.models.differentiable_neural_computer\n"
        "model m(usage: seq[6, 1]) -> seq[6, 1] {\n    return free_cells[6](usage)\n}\n"
    ).double()
    usage = torch.rand(20, 6, dtype=torch.float64)
    usage[:5] = 0.0
    usage[5:10, ::2] = usage[5:10, :1].clone()
    usage[10] = -0.2  # usages of PANM's program leave [0, 1]
    usage.requires_grad_()
    actual = module(usage[..., None])[..., 0]
    expected = torch.stack([sorted_allocation(row) for row in usage])
    same_gradients(actual, expected, [usage])
