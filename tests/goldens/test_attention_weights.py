"""Attention written with maps: stick-breaking, forgetting attention, contextual positions and ALiBi."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from archlang.blocks.attention import Attention
from archlang.blocks.maps import AlibiBias
from tests.goldens.golden import Golden, Program, close, gradients_close, output_close

USE = "use archlang.models.attention_weights\n"


def joined(golden: Golden, name: str, by_head: bool = True) -> Tensor:
    """Returns [b h t c], or [b t h c] unless `by_head`, as [b t hc]."""
    value = golden[name]
    return (value.transpose(1, 2) if by_head else value).flatten(2)


def split(value: Tensor, golden: Golden, by_head: bool = True) -> Tensor:
    """Undoes `joined`."""
    shape = golden["out.o"].shape
    value = value.reshape(*value.shape[:2], shape[1] if by_head else shape[2], -1)
    return value.transpose(1, 2) if by_head else value


def text(inputs: Mapping[str, Tensor], call: str, result: str) -> str:
    """A model of one call."""
    fields = ", ".join(f"{name}: seq[n, {value.shape[2]}]" for name, value in inputs.items())
    return f"{USE}model m({fields}) -> seq[n, {inputs[result].shape[2]}] {{ return {call} }}\n"


def compare(golden: Golden, result: Tensor, by_head: bool = True) -> None:
    """Compares a result and all gradients."""
    output_close(golden, split(result, golden, by_head) if golden["out.o"].dim() == 4 else result)


@pytest.mark.goldens("modern", "stickbreaking", "stickbreaking_remainder", "stickbreaking_current_remainder")
def test_stick_breaking(golden: Golden) -> None:
    inputs = {name: joined(golden, f"in.{name}") for name in "qkv"}
    heads = golden["in.q"].shape[1]
    current, remainder = (str(bool(golden[f"cfg.{name}"])).lower() for name in ("attend_current", "add_remainder"))
    call = f"stick_breaking[{heads}, current = {current}, remainder = {remainder}](q, k, v)"
    program = Program(text(inputs, call, "v"), golden, {})
    output = split(program(*inputs.values()), golden)
    close(golden, output, "out.o")
    # The rest of the stick, by values of one.
    ones = f"stick_breaking[{heads}, current = {current}, remainder = false](q, k, v)"
    unit = {**inputs, "v": torch.ones_like(inputs["q"][..., :heads])}
    weights = Program(text(unit, ones, "v"), golden, {})
    rest = 1 - weights(*unit.values()).transpose(1, 2)
    close(golden, rest, "out.rem")
    gradients_close(golden, (output * golden["obj.r_o"]).sum() + (rest * golden["obj.r_rem"]).sum())


@pytest.mark.goldens("modern", "forgetting_attention")
def test_forgetting(golden: Golden) -> None:
    inputs = {name: joined(golden, f"in.{name}", by_head=False) for name in "qkv"} | {"g": golden["in.g"]}
    program = Program(text(inputs, "forgetting(q, k, v, g)", "v"), golden, {})
    compare(golden, program(*inputs.values()), by_head=False)


FOX = {"linear.weight": "p.f.w", "linear.bias": "p.f.b"}
PLAIN = {**FOX, "linear_2.weight": "p.q", "linear_3.weight": "p.k", "linear_4.weight": "p.v", "linear_5.weight": "p.o"}
PRO = {
    **FOX,
    "key_shift.weight": "p.k_shift",
    "value_shift.weight": "p.v_shift",
    "linear_2.weight": "p.q",
    "linear_3.weight": "p.k",
    "linear_4.weight": "p.v",
    "rms_norm.weight": "p.q_norm.g",
    "rms_norm_2.weight": "p.k_norm.g",
    "linear_5.weight": "p.gate",
    "rms_norm_3.weight": "p.out_norm.g",
    "linear_6.weight": "p.o",
}


@pytest.mark.goldens("modern", "fox_layer", "fox_layer_pro")
def test_the_layers_of_the_forgetting_transformer(golden: Golden) -> None:
    is_pro = golden.name.endswith("pro")
    block = "forgetting_attention_pro" if is_pro else "forgetting_attention"
    heads, lengths = golden.number("cfg.heads"), golden["in.lengths"]
    x = golden["in.x"]
    # The golden padding is on the left: the samples are moved to the front.
    moved = torch.stack([sample.roll(int(length), 0) for sample, length in zip(x, lengths, strict=True)])
    names = {f"{block}.{name}": array for name, array in (PRO if is_pro else PLAIN).items()}
    program = Program(text({"x": x}, f"{block}[{heads}](x)", "x"), golden, names)
    y = program(moved, x=lengths)
    real = torch.arange(x.shape[1]) < lengths[:, None]
    y = y.masked_fill(~real[..., None], 0.0)
    output = torch.stack([sample.roll(-int(length), 0) for sample, length in zip(y, lengths, strict=True)])
    output_close(golden, output)


@pytest.mark.goldens("modern", "cope", "cope_sepkey")
def test_contextual_positions(golden: Golden) -> None:
    inputs = {name: golden[f"in.{name}"] for name in ("q", "k", "v", "k_gate") if f"in.{name}" in golden}
    places = golden.number("cfg.npos")
    call = f"contextual_position[1, {places}]({', '.join(inputs)})"
    table = golden["p.pos_emb"][0].T
    program = Program(text(inputs, call, "v"), golden, {"contextual_position.learned.weight": table})
    compare(golden, program(*inputs.values()))


@pytest.mark.goldens("modern", "alibi")
def test_alibi(golden: Golden) -> None:
    q = golden["in.q"]
    heads, width = q.shape[1], q.shape[1] * q.shape[3]
    for name in golden.names("slopes.h"):
        count = int(name)
        bias = AlibiBias(heads=count, d=1, e=1)(torch.zeros(1, 2, 1), torch.zeros(1, 1, 1))
        close(golden, -bias[0, 1, 0], f"slopes.h{name}", 0.0)
    inputs = {name: joined(golden, f"in.{name}") for name in "qkv"}
    call = f"weigh[causal = true](softmax_keys[causal = true](scores[{heads}](q, k) + alibi_bias[{heads}](q, k)), v)"
    program = Program(text(inputs, call, "v"), golden, {})
    compare(golden, program(*inputs.values()))
    # As a position of attention, whose linear maps are parts of the identity.
    block = Attention(
        heads=heads, position="alibi", causal=True, dropout=0.0, output_dropout=0.0, head_dim=0,
        causal_rule="always", padded="zero", init="torch", kv_heads=heads, window=0, scale=0.0, softcap=0.0,
        qk_norm=False, sinks=False, bias=False, gate="none", base=1e4, d=width, e=2 * width,
    ).to(golden.dtype)  # fmt: skip
    identity = torch.eye(width, dtype=golden.dtype)
    with torch.no_grad():
        for name, weight in (("query", identity), ("output", identity)):
            getattr(block, name).weight.copy_(weight)
        block.key.weight.copy_(torch.cat((identity, torch.zeros_like(identity)), 1))
        block.value.weight.copy_(torch.cat((torch.zeros_like(identity), identity), 1))
    compare(golden, block(inputs["q"], torch.cat((inputs["k"], inputs["v"]), 2)))
