"""`load` compiles a file in one call."""

from pathlib import Path

import pytest
import torch

import archlang
from tests.conftest import Compiled

MODELS = """
model first[d = 4](x: tokens[n]) -> logits[n, d] { return embed[d](x) }

model second[d = 4, gated: bool, act: symbol = relu](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    if gated { h2 = h * norm(h) } else { h2 = h }
    return h2 |> feedforward[8, activation = act] |> mean |> linear[classes]
}
"""
READING = """
block side(h: seq[n, d]) -> seq[n, d] { return h + attention[2](h) }

model reader[d = 4, read: block = norm](x: tokens[n]) -> logits[classes] {
    let encode = read
    return mean(encode(embed[d](x))) |> linear[classes]
}
"""
RECIPE = """
recipe tables {
    task  ctl
    model second[d = 6, gated = true]
    train adamw[lr = 1e-3, steps = 10]
}
"""


def test_load_compiles_the_named_model_or_the_first(compiled: Compiled) -> None:
    x = torch.zeros(2, 3, dtype=torch.int64)
    assert compiled(MODELS)(x).shape == (2, 3, 4)
    assert compiled(MODELS, d=7)(x).shape == (2, 3, 7)
    assert compiled(MODELS, model="second", gated=True)(x).shape == (2, 5)


def test_statics_are_python_values(compiled: Compiled) -> None:
    module = compiled(MODELS, model="second", gated=False, act="gelu")
    assert not hasattr(module, "norm")
    assert getattr(module.get_submodule("feedforward"), "activation") is torch.nn.functional.gelu  # noqa: B009


def test_the_first_recipe_is_compiled_unless_a_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "program.arch"
    path.write_text(MODELS + RECIPE)
    assert archlang.load(path).program.graph.name == "second"
    assert archlang.load(path, "first", vocab=11).program.graph.name == "first"


def test_a_recipe_sets_its_statics_and_the_sizes_of_its_task(tmp_path: Path) -> None:
    path = tmp_path / "program.arch"
    path.write_text(MODELS + RECIPE)
    module = archlang.load(path, recipe="tables", d=8)
    assert hasattr(module, "norm")
    assert module.get_parameter("embed.weight").shape[1] == 8


def test_a_mistake_in_the_file_raises_its_diagnostic(compiled: Compiled) -> None:
    with pytest.raises(archlang.ProgramError, match="program.arch:1:"):
        compiled("model m(x: tokens[n]) -> logits[n, 4] { return embd[4](x) }")


def test_a_python_value_that_cannot_be_a_static_raises(compiled: Compiled) -> None:
    with pytest.raises(TypeError, match="a static cannot be"):
        compiled(MODELS, d={})


def test_a_block_is_passed_by_its_name_from_the_library_or_the_file(compiled: Compiled) -> None:
    names = [{name.split(".")[1] for name, _ in compiled(READING, **statics).named_parameters() if "encode" in name}
             for statics in ({}, {"read": "side"})]  # fmt: skip
    assert names == [{"weight", "bias"}, {"attention"}]
