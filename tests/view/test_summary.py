"""Costs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import archlang
from archlang import compile as compiler
from archlang.backend.build import build
from archlang.view.summary import summarize

RECIPES = sorted((Path(archlang.__file__).parent / "recipes").glob("*.arch"))


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_parameters_are_those_of_the_module(file: Path) -> None:
    for recipe in compiler.recipes(file):
        graph = compiler.plan(file, recipe).graph
        found = summarize(graph, 16)
        assert not found.unknown
        assert found.unique == sum(one.numel() for one in build(graph).parameters())


PROGRAM = """
model small[d = 16](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    stack 2 { h <- h + attention[heads = 2](norm(h)) }
    repeat 3 { h <- feedforward[24](h) + gate[8](h) }
    return linear[vocab](h)
}
"""


@pytest.mark.parametrize("length", [1, 5, 12])
def test_flops_are_those_that_torch_counts(tmp_path: Path, length: int) -> None:
    file = tmp_path / "small.arch"
    file.write_text(PROGRAM)
    graph = compiler.graph(file, None, {"vocab": 7})
    # torch does not count its CPU kernel of attention, but counts the products that it stands for.
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        build(graph)(torch.zeros(3, length, dtype=torch.int64))
    assert 3 * summarize(graph, length).flops == counter.get_total_flops()


def test_weights_of_a_repeat_count_once_and_those_of_a_stack_each_step(tmp_path: Path) -> None:
    file = tmp_path / "small.arch"
    file.write_text(PROGRAM)
    found = summarize(compiler.graph(file, None, {"vocab": 7}), 4)
    feeding = 16 * 24 + 24 + 24 * 16 + 16 + 16 * 8 + 8 + 8 * 16 + 16
    assert found.executed - found.unique == 2 * feeding
