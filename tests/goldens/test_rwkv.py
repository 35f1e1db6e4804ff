"""Two official blocks of RWKV-7 against the library's page."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.goldens.golden import Golden, Program, Weights, close, gradients_close, page, pair

TOLERANCE = 4e-5
SUM = 1e-4
"""the tolerance of a sum over all outputs, whose terms nearly cancel"""
LAYERS = """
model layers[d: int, heads: int, layers: int, hidden: int, decay: int, rate: int, value: int, gate: int](
    x: seq[n, d]) -> seq[n, d] {
    return rwkv7_layers[heads, layers, hidden, decay, rate, value, gate](x)
}
"""


def low_rank(golden: Golden, ours: str, first: int, theirs: str) -> Weights:
    """Returns the weights of two maps and a bias; the program's maps are transposed."""
    return {
        f"{ours}.linear_{first}.weight": golden[f"{theirs}1"].T,
        f"{ours}.linear_{first + 1}.weight": golden[f"{theirs}2"].T,
        f"{ours}.linear_{first + 1}.bias": f"{theirs}0",
    }


def norm(ours: str, theirs: str) -> Weights:
    return pair(ours, f"{theirs}.{{}}", ("weight", "bias"))


def time_mix(golden: Golden, ours: str, theirs: str) -> Weights:
    weights: Weights = {f"{ours}.token_shift{number}.learned.weight": f"{theirs}.x_{letter}"
                        for letter, number in zip("rwkag", ("", "_2", "_3", "_4", "_5"), strict=True)}  # fmt: skip
    weights |= {f"{ours}.linear.weight": f"{theirs}.receptance.weight"}
    weights |= {f"{ours}.linear_4.weight": f"{theirs}.key.weight"}
    weights |= low_rank(golden, ours, 2, f"{theirs}.w") | low_rank(golden, ours, 5, f"{theirs}.a")
    weights |= {f"{ours}.linear_{number}.weight": golden[f"{theirs}.g{number - 6}"].T for number in (7, 8)}
    weights |= {f"{ours}.learned.weight": f"{theirs}.k_k", f"{ours}.learned_2.weight": f"{theirs}.k_a"}
    weights |= {f"{ours}.learned_3.weight": f"{theirs}.r_k", f"{ours}.linear_9.weight": f"{theirs}.output.weight"}
    return weights | norm(f"{ours}.group_norm", f"{theirs}.ln_x")


def value(golden: Golden, ours: str, theirs: str, is_first: bool) -> Weights:
    weights: Weights = {f"{ours}.token_shift.learned.weight": f"{theirs}.x_v"}
    weights |= {f"{ours}.linear.weight": f"{theirs}.value.weight"}
    return weights if is_first else weights | low_rank(golden, ours, 2, f"{theirs}.v")


def channel_mix(ours: str, theirs: str) -> Weights:
    return {
        f"{ours}.token_shift.learned.weight": f"{theirs}.x_k",
        f"{ours}.linear.weight": f"{theirs}.key.weight",
        f"{ours}.linear_2.weight": f"{theirs}.value.weight",
    }


def all_weights(golden: Golden, layers: int) -> Weights:
    """Returns the weights of the page."""
    weights = norm("rwkv7_layers.norm", "p.layer0.ln0")
    for layer in range(layers):
        ours = "rwkv7_layers" if layer == 0 else f"rwkv7_layers.stack.{layer - 1}"
        first, second = ("norm_2", "norm_3") if layer == 0 else ("norm", "norm_2")
        theirs = f"p.layer{layer}"
        weights |= norm(f"{ours}.{first}", f"{theirs}.ln1") | norm(f"{ours}.{second}", f"{theirs}.ln2")
        weights |= value(golden, f"{ours}.rwkv7_value", f"{theirs}.att", layer == 0)
        weights |= time_mix(golden, f"{ours}.rwkv7_time_mix", f"{theirs}.att")
        weights |= channel_mix(f"{ours}.rwkv7_channel_mix", f"{theirs}.ffn")
    return weights


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
def test_the_layers_of_rwkv_7(golden: Golden, by_position: bool) -> None:
    x, expected_layers = golden["in.x"], golden["out.layers"]
    d, attention = x.shape[-1], "p.layer1.att"
    ranks = {"decay": "w", "rate": "a", "value": "v", "gate": "g"}
    statics: dict[str, Any] = {name: golden[f"{attention}.{ranks[name]}1"].shape[1] for name in ranks}  # Any: statics
    statics |= {"heads": d // golden.number("cfg.head_size"), "hidden": len(golden["p.layer0.ffn.key.weight"])}

    def run(layers: int) -> Tensor:
        text = library(by_position) + LAYERS
        weights = all_weights(golden, layers)
        return Program(text, golden, weights, "layers", d=d, layers=layers, **statics)(x)

    torch.testing.assert_close(run(1), expected_layers[0], atol=TOLERANCE, rtol=0, check_dtype=False)
    o = run(len(expected_layers))
    close(golden, o, "out.o", TOLERANCE)
    objective = (o * golden["obj.r_o"]).sum()
    close(golden, objective, "obj.value", SUM)
    gradients_close(golden, objective, tolerance=TOLERANCE)
