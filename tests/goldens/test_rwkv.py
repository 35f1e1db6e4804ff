"""Two official blocks of RWKV-7 against the library's page."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import archlang
from tests.goldens.golden import Golden, close, page, relatively_close

TOLERANCE = 4e-5
SUM = 1e-4
"""the tolerance of a sum over all outputs, whose terms nearly cancel"""
LAYERS = """
model layers[d: int, heads: int, layers: int, hidden: int, decay: int, rate: int, value: int, gate: int](
    x: seq[n, d]) -> seq[n, d] {
    return rwkv7_layers[heads, layers, hidden, decay, rate, value, gate](x)
}
"""


def low_rank(ours: str, first: int, theirs: str) -> dict[str, str]:
    """Returns the names of two maps and a bias; the program's maps are transposed."""
    return {
        f"{ours}.linear_{first}.weight": f"{theirs}1.T",
        f"{ours}.linear_{first + 1}.weight": f"{theirs}2.T",
        f"{ours}.linear_{first + 1}.bias": f"{theirs}0",
    }


def norm(ours: str, theirs: str) -> dict[str, str]:
    return {f"{ours}.{kind}": f"{theirs}.{kind}" for kind in ("weight", "bias")}


def time_mix(ours: str, theirs: str) -> dict[str, str]:
    names = {f"{ours}.token_shift{number}.learned.weight": f"{theirs}.x_{letter}"
             for letter, number in zip("rwkag", ("", "_2", "_3", "_4", "_5"), strict=True)}  # fmt: skip
    names |= {f"{ours}.linear.weight": f"{theirs}.receptance.weight", f"{ours}.linear_4.weight": f"{theirs}.key.weight"}
    names |= low_rank(ours, 2, f"{theirs}.w") | low_rank(ours, 5, f"{theirs}.a")
    names |= {f"{ours}.linear_7.weight": f"{theirs}.g1.T", f"{ours}.linear_8.weight": f"{theirs}.g2.T"}
    names |= {f"{ours}.learned.weight": f"{theirs}.k_k", f"{ours}.learned_2.weight": f"{theirs}.k_a"}
    names |= {f"{ours}.learned_3.weight": f"{theirs}.r_k", f"{ours}.linear_9.weight": f"{theirs}.output.weight"}
    return names | norm(f"{ours}.group_norm", f"{theirs}.ln_x")


def value(ours: str, theirs: str, is_first: bool) -> dict[str, str]:
    names = {f"{ours}.token_shift.learned.weight": f"{theirs}.x_v", f"{ours}.linear.weight": f"{theirs}.value.weight"}
    return names if is_first else names | low_rank(ours, 2, f"{theirs}.v")


def channel_mix(ours: str, theirs: str) -> dict[str, str]:
    return {
        f"{ours}.token_shift.learned.weight": f"{theirs}.x_k",
        f"{ours}.linear.weight": f"{theirs}.key.weight",
        f"{ours}.linear_2.weight": f"{theirs}.value.weight",
    }


def all_names(layers: int) -> dict[str, str]:
    """Returns the name in the file of each parameter of the page; `.T` marks a transposed one."""
    names = norm("rwkv7_layers.norm", "layer0.ln0")
    for layer in range(layers):
        ours = "rwkv7_layers" if layer == 0 else f"rwkv7_layers.stack.{layer - 1}"
        first, second = ("norm_2", "norm_3") if layer == 0 else ("norm", "norm_2")
        theirs = f"layer{layer}"
        names |= norm(f"{ours}.{first}", f"{theirs}.ln1") | norm(f"{ours}.{second}", f"{theirs}.ln2")
        names |= value(f"{ours}.rwkv7_value", f"{theirs}.att", layer == 0)
        names |= time_mix(f"{ours}.rwkv7_time_mix", f"{theirs}.att")
        names |= channel_mix(f"{ours}.rwkv7_channel_mix", f"{theirs}.ffn")
    return names


def library(by_position: bool) -> str:
    """Returns the library's page, whose recurrence is computed in chunks, or one position at a time."""
    text = page("rwkv")
    if not by_position:
        return text
    assert text.count(" linear_recurrence[") == 1
    used = "use archlang.models.linear_recurrences\n\n"
    return used + text.replace(" linear_recurrence[", " linear_recurrence_by_position[")


@pytest.mark.goldens("modern", "rwkv7_blocks")
@pytest.mark.parametrize("by_position", [True, False], ids=["page", "chunks"])
def test_the_layers_of_rwkv_7(golden: Golden, folder: Path, by_position: bool) -> None:
    x, expected_layers = golden["in.x"].requires_grad_(), golden["out.layers"]
    d, attention = x.shape[-1], "p.layer1.att"
    (folder / "layers.arch").write_text(library(by_position) + LAYERS, encoding="utf-8")
    ranks = {"decay": "w", "rate": "a", "value": "v", "gate": "g"}
    statics: dict[str, Any] = {name: golden[f"{attention}.{ranks[name]}1"].shape[1] for name in ranks}  # Any: statics
    statics |= {"heads": d // golden.number("cfg.head_size"), "hidden": len(golden["p.layer0.ffn.key.weight"])}

    def run(layers: int) -> tuple[Tensor, dict[str, Tensor]]:
        module = archlang.load(folder / "layers.arch", "layers", d=d, layers=layers, **statics).to(golden.dtype)
        parameters = dict(module.named_parameters())
        names = all_names(layers)
        assert set(names) == set(parameters)
        for ours, theirs in names.items():
            array = golden[f"p.{theirs.removesuffix('.T')}"]
            parameters[ours].data.copy_((array.T if theirs.endswith(".T") else array).reshape(parameters[ours].shape))
        return module(x), {names[name]: parameter for name, parameter in parameters.items()}

    torch.testing.assert_close(run(1)[0], expected_layers[0], atol=TOLERANCE, rtol=0, check_dtype=False)
    o, parameters = run(len(expected_layers))
    close(golden, o, "out.o", TOLERANCE)
    objective = (o * golden["obj.r_o"]).sum()
    close(golden, objective, "obj.value", SUM)
    gradients = torch.autograd.grad(objective, [x, *parameters.values()])
    assert {*golden.names("grad.")} == {"in.x", *(name.removesuffix(".T") for name in parameters)}
    for name, gradient in zip(["in.x", *parameters], gradients, strict=True):
        gradient = gradient.T if name.endswith(".T") else gradient
        relatively_close(golden, gradient, f"grad.{name.removesuffix('.T')}", TOLERANCE)
