"""The golden arrays of the program whose heads share keys and values, against the page of the library."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend.architecture import Architecture
from tests.goldens.golden import Golden, close, gradients_close, set_weights
from tests.shipped_models import library_page

UNIT = {"unit_heads": "q_scale", "unit_heads_2": "k_scale"}


def linears(names: list[str]) -> dict[str, str]:
    """Returns the weights of linear maps, by the names of their arrays in the order of the page."""
    return {f"linear{f'_{index}' if index > 1 else ''}.weight": name for index, name in enumerate(names, 1)}


def layer_names(ours: str, theirs: str, unit: bool, reads: bool) -> Iterator[tuple[str, str]]:
    """Yields the parameters of a layer, except those of the state, with their arrays; `ff_in` is cut in two."""
    maps = ["kv", "q", *(["state.q_to_state"] if reads else []), "o", "ff_in.value", "ff_in.gate", "ff_out"]
    own = {**linears(maps), "gain_norm.rms_norm.weight": "ln.g", "gain_norm_2.rms_norm.weight": "ff_ln.g"}
    if unit:
        own["window_attention.unit_heads.learned.weight"] = "q_scale"
        own["window_attention.keys.learned.weight"] = "k_scale"
    if reads:
        own |= {f"state_attention.{name}.learned.weight": f"state.read.{scale}" for name, scale in UNIT.items()}
    yield from ((f"{ours}.{name}", f"{theirs}.{array}") for name, array in own.items())


def names_of(golden: Golden) -> dict[str, str]:
    """Returns the array of each parameter of the page."""
    depth = golden.number("cfg.depth")
    (read,), (write,) = golden["cfg.read_layers"].tolist(), golden["cfg.write_layers"].tolist()
    state = f"layer{write}.state"
    names = {
        "embed.weight": "embed", "gain_norm.rms_norm.weight": f"{state}.ln.g", "learned.weight": f"{state}.pos",
        "linear.weight": f"{state}.state_kv", "gain_norm_2.rms_norm.weight": "out_ln.g", "linear_2.weight": "lm",
        "next_state.learned.weight": f"{state}.ema_logit", "next_state.linear_4.bias": f"{state}.gate_z.b",
    }  # fmt: skip
    for name, array in linears(["state_q", "q_from_state", "out", "gate_z.w"]).items():
        names[f"next_state.{name}"] = f"{state}.{array}"
    for block, kind in (("state_attention", "self"), ("state_attention_2", "write")):
        for name, scale in UNIT.items():
            names[f"next_state.{block}.{name}.learned.weight"] = f"{state}.{kind}.{scale}"
    for layer in range(depth):
        if layer in (read, write):
            ours = "window_layer" if layer == read else "window_layer_2"
        elif layer < read:
            ours = f"stack.{layer}.window_layer"
        elif layer < write:
            ours = f"stack_2.{layer - read - 1}.window_layer"
        else:
            ours = f"stack_{2 if read == write else 3}.{layer - write - 1}.window_layer"
        for name, array in layer_names(ours, f"layer{layer}", layer == write, layer == read):
            names[name] = array.replace(f"layer{layer}.state", state)
    return names


def array_of(golden: Golden, name: str) -> Tensor:
    """Returns an array, or a part of it, in the order of our parameter."""
    stem, _, part = name.rpartition(".")
    if part in ("value", "gate"):
        return golden[f"p.{stem}"].chunk(2)[part == "gate"]
    array = golden[f"p.{name}"]
    if name.endswith("_scale"):
        return array - 1  # our factors begin at 0
    if name.endswith("state.out"):  # from the order (head, self or cross) of columns
        heads = golden.number("cfg.heads")
        return array.reshape(len(array), heads, 2, -1).transpose(1, 2).reshape(len(array), -1)
    return array


@cache
def compiled(dtype: torch.dtype, statics: tuple[tuple[str, Any], ...]) -> Architecture:
    path = library_page("block_recurrent_shared_keys")
    return archlang.load(path, "recurrent_windows", **dict(statics)).to(dtype).eval()


def model_of(golden: Golden, result: str) -> Architecture:
    """Returns the page with the weights of the file. Tests share modules: compiling takes most of their time."""
    (read,), (write,) = golden["cfg.read_layers"].tolist(), golden["cfg.write_layers"].tolist()
    words, d = golden["p.embed"].shape
    statics: dict[str, Any] = {  # Any: statics are of several types
        "words": words, "vocab": words, "d": d, "depth": golden.number("cfg.depth"), "read": read, "write": write,
        "heads": golden.number("cfg.heads"), "size": golden.number("cfg.head_dim"),
        "ff": golden["p.layer0.ff_out"].shape[1], "window": golden.number("cfg.block_width"),
        "states": golden.number("cfg.num_states"), "result": result,
    }  # fmt: skip
    module = compiled(golden.dtype, tuple(statics.items()))
    # A page that returns its states reads fewer parameters.
    arrays = {name: array for name, array in names_of(golden).items() if name in dict(module.named_parameters())}
    set_weights(module, golden, {name: array_of(golden, array) for name, array in arrays.items()})
    return module


@pytest.mark.goldens("modern", "blockrec_lucidrains*")
@pytest.mark.parametrize("call", [0, 1])
def test_a_language_model_equals_the_program_in_logits_memories_and_gradients(golden: Golden, call: int) -> None:
    """The second call goes on from the state and the windows that the first has returned."""
    ids, targets = golden[f"in.ids{call}"].long(), golden[f"in.targets{call}"].long()
    (write,) = golden["cfg.write_layers"].tolist()
    depth, window = golden.number("cfg.depth"), golden.number("cfg.block_width")
    size, batch = golden.number("cfg.head_dim"), len(ids)
    first = golden[f"p.layer{write}.state.init"]
    if call == 0:
        state = first.expand(batch, -1, -1)
        memory = first.new_zeros(batch, depth * window, 2 * size)
    else:
        state = golden[f"out{call - 1}.state.layer{write}"]
        windows = [golden[f"out{call - 1}.kv_memory.layer{layer}"] for layer in range(depth)]
        memory = torch.cat([torch.cat(tuple(keys_and_values), -1) for keys_and_values in windows], 1)
    kept = first.new_full((batch, 1), float(call))

    model = model_of(golden, "logits")
    logits = model(ids, state, memory, kept)
    close(golden, logits, f"out{call}.logits")
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    close(golden, loss, f"out{call}.loss")

    gradients_close(golden, loss, f"grad{call}.")
    if unused := {*golden.names("p.")} - {*golden.names(f"grad{call}.")}:
        assert not any(gradient.any() for gradient in golden.gradients(loss, unused).values())

    for result in ("state", "memory"):
        actual = model_of(golden, result)(ids, state, memory, kept)
        if result == "state":
            close(golden, actual, f"out{call}.state.layer{write}")
            continue
        for layer, own in enumerate(actual.split(window, 1)):
            close(golden, torch.stack(own.chunk(2, -1)), f"out{call}.kv_memory.layer{layer}")
