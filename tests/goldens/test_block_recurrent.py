"""The Block-Recurrent Transformer's golden arrays against the layer of the library."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch

import archlang
from tests.goldens.golden import Golden, Program, close, gradients_close, page
from tests.shipped_models import library_page

# The parameters of the layer by their arrays; those that a form does not have are missing in the file.
WEIGHTS = {
    "rms_norm.weight": "token.ln_attn.g",
    "linear.weight": "token.keys",
    "linear_2.weight": "token.values",
    "rms_norm_2.weight": "state.ln_attn.g",
    "learned.weight": "state.position_embeddings",
    "linear_3.weight": "state.keys",
    "linear_4.weight": "state.values",
    "queries.linear.weight": "token.queries",
    "window_attention.scaled.learned.weight": "token.attention_scale",
    "window_attention.bias.learned.weight": "rel_bias",
    "queries_2.linear.weight": "token.queries2",
    "cosine_attention.head_scale.learned.weight": "token.attention_scale2",
    "linear_5.weight": "token.o",
    "rms_norm_3.weight": "token.ln_ff.g",
    "relu_mlp.linear.weight": "token.ff1",
    "relu_mlp.linear_2.weight": "token.ff2",
    "queries_3.linear.weight": "state.queries",
    "cosine_attention_2.head_scale.learned.weight": "state.attention_scale",
    "queries_4.linear.weight": "state.queries2",
    "cosine_attention_3.head_scale.learned.weight": "state.attention_scale2",
}
BOTH = {"linear_6.weight": "state.o", "rms_norm_4.weight": "state.ln_ff.g"}
SINGLE = {"linear_6.weight": "state.ff1", "linear_7.weight": "state.ff2"}
DUAL = {**BOTH, "linear_7.weight": "state.ff1", "linear_8.weight": "state.ff2"}
SCALES = ("attention_scale", "attention_scale2")
"""the program's factors begin at 1, ours at 0"""


def gate(ours: str, theirs: str) -> dict[str, str]:
    lstm = {
        f"{ours}.{linear}.{kind}": f"state.{theirs}.{name}.{kind[0]}"
        for linear, name in (("linear", "forget_gate"), ("linear_2", "input_gate"))
        for kind in ("weight", "bias")
    }
    return {f"{ours}.learned.weight": f"state.{theirs}.gate_bias", **lstm}


def form(golden: Golden) -> str:
    if golden.number("cfg.single_gate"):
        return "single"
    return "skip" if golden.number("cfg.skip_ffn") else "dual"


@cache
def parameter_names(path: Path, statics: tuple[tuple[str, Any], ...]) -> tuple[str, ...]:
    """Returns the names of a layer's parameters: each result needs others."""
    module = archlang.load(path, "block_recurrent_layer", **dict(statics))
    return tuple(name for name, _ in module.named_parameters())


def layer(golden: Golden, result: str) -> Program:
    own = form(golden)
    weights = {**WEIGHTS, **{"single": SINGLE, "skip": BOTH, "dual": DUAL}[own]}
    weights |= gate("state_gate", "ff_gate" if own == "single" else "attn_gate") | gate("state_gate_2", "ff_gate")
    path = library_page("block_recurrent")
    statics: dict[str, Any] = {  # Any: statics are of several types
        "heads": golden.number("cfg.heads"), "window": golden.number("cfg.window"),
        "states": golden.number("cfg.num_states"),
        "width": golden.number("cfg.heads") * golden.number("cfg.head_dim"), "ff": golden["p.token.ff1"].shape[0],
        "gate": str(golden.arrays["cfg.gate"]), "form": own, "positions": str(golden.arrays["cfg.positions"]).lower(),
        "result": result, "d": golden.number("cfg.d"),
    }  # fmt: skip
    names = parameter_names(path, tuple(statics.items()))
    sources = {name: golden[f"p.{weights[name]}"] - int(weights[name].endswith(SCALES)) for name in names}
    return Program(page("block_recurrent"), golden, sources, "block_recurrent_layer", **statics)


@pytest.mark.goldens("modern", "blockrec_bias_*", "blockrec_lstm_*")
def test_a_layer_equals_the_authors_in_tokens_states_and_gradients(golden: Golden) -> None:
    # The first sample begins a document with the initial state.
    state = torch.cat((golden["p.init_state"][None], golden["in.state"][1:]))
    cache = [golden[f"in.prev_{kind}"].flatten(2) for kind in "kv"]
    results = {"tokens": "y", "state": "next_state", "keys": "next_k", "values": "next_v"}
    value = torch.zeros((), dtype=golden.dtype)
    for result, array in results.items():
        actual = layer(golden, result)(golden["in.x"], state, *cache)
        close(golden, actual, f"out.{array}")
        if result in ("tokens", "state"):
            value = value + (actual * golden[f"obj.r_{'y' if result == 'tokens' else 'state'}"]).sum()
    torch.testing.assert_close(value, golden["obj.value"], atol=2e-4, rtol=1e-5, check_dtype=False)
    gradients_close(golden, value)
