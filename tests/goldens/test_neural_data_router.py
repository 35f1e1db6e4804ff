"""Neural Data Router's golden arrays against programs in archlang that use the library's layers."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from archlang.backend.architecture import Architecture
from archlang.blocks.attention import Attention
from archlang.blocks.geometric_attention import GeometricAttention
from archlang.blocks.halting import Ledger
from archlang.blocks.relative_attention import RelativeAttention
from tests.goldens.golden import Calls, Golden, Program, Weights, close, page, pair, watch, watch_halting

TOLERANCE = 1e-5
GRADIENT = 5e-5
THROUGH_STEPS = 1e-4


# Arrays of the parameters in a golden file

GEOMETRIC = "geometric_attention[heads, normalised = normalised, head_dim = head_dim]"
RELATIVE = "relative_attention[heads, scale = learned, head_dim = head_dim]"
ABSREL = "absrel_attention[heads, head_dim = head_dim]"
PLAIN = "attention[heads, head_dim = head_dim, padded = computed]"


def attention_of(golden: Golden) -> str:
    """Returns the archlang expression of the attention whose parameters a file has."""
    if "p_w_dir_left" in golden:
        return GEOMETRIC
    if "p_w_rel_gate" in golden:
        return ABSREL
    return RELATIVE if "p_wk_pos" in golden else PLAIN


def attention_weights(golden: Golden, name: str) -> Weights:
    weights: Weights = {
        f"{name}.{ours}.weight": f"p_w{theirs}"
        for ours, theirs in {"query": "q", "key": "k", "value": "v", "output": "o"}.items()
    }
    if "p_w_dir_left" in golden:
        for kind in ("weight", "bias"):
            both = torch.cat([golden[f"p_{kind[0]}_dir_{side}"] for side in ("left", "right")])
            weights[f"{name}.direction.{kind}"] = both
        weights |= {f"{name}.query_bias": "p_bq", f"{name}.content_scale": "p_alpha"}
        weights |= {f"{name}.direction_scale": "p_beta", f"{name}.score_bias": "p_gamma"}
    if "p_wk_pos" in golden:
        weights |= {f"{name}.position.weight": "p_wk_pos", f"{name}.scale": "p_alpha"}
        weights |= {f"{name}.content_bias": "p_bq_content", f"{name}.position_bias": "p_bq_pos"}
    if "p_w_rel_gate" in golden:
        weights |= pair(f"{name}.relative_gate", "p_{}_rel_gate")
    return weights


def layer_weights(golden: Golden, layer: str) -> Weights:
    """Returns the weights of a `gated_layer` or `universal_layer` at a path."""
    gated = layer.endswith("gated_layer")
    weights = attention_weights(golden, f"{layer}.attend")
    weights |= pair(f"{layer}.norm", "p_ln_attn_{}", "gb")
    for ours, theirs in (("feedforward", "ff"), *([("feedforward_2", "gate")] if gated else [])):
        weights |= pair(f"{layer}.{ours}.hidden", f"p_{{}}_{theirs}1")
        weights |= pair(f"{layer}.{ours}.output", f"p_{{}}_{theirs}2")
    second = "update" if gated else "ff"
    if f"p_ln_{second}_g" in golden:
        weights |= pair(f"{layer}.norm_2", f"p_ln_{second}_{{}}", "gb")
    return weights


def sizes(golden: Golden) -> dict[str, Any]:  # Any: as statics are
    heads, head_dim, d = golden["p_wq"].shape
    statics = {"heads": heads, "head_dim": head_dim, "d": d}
    return statics | ({"ff": len(golden["p_w_ff1"])} if "p_w_ff1" in golden else {})


# Intermediate results of blocks

Attending = GeometricAttention | RelativeAttention | Attention


def watched(module: nn.Module) -> dict[str, Calls]:
    """Records further calls of the blocks, by the last parts of their paths."""
    return {path.rpartition(".")[2]: watch(block) for path, block in module.named_modules()}


def attending(module: nn.Module) -> tuple[str, Attending]:
    """Returns the name and the block of the only attention of a module."""
    ((path, block),) = [(path, block) for path, block in module.named_modules() if isinstance(block, Attending)]
    return path.rpartition(".")[2], block


def compare_steps(golden: Golden, steps: list[Tensor], name: str) -> None:
    """Compares all steps of a value, or its only value if the case has no steps."""
    assert steps
    close(golden, torch.stack(steps) if "states" in golden else steps[0], name, TOLERANCE)


def compare_gradient(golden: Golden, result: Tensor, x: Tensor, name: str = "grad_x") -> None:
    (gradient,) = torch.autograd.grad((result * golden["probe"]).sum(), x, retain_graph=True)
    close(golden, gradient, name, THROUGH_STEPS if "states" in golden else GRADIENT)


# Geometric attention

CORE = """
model core[normalised: bool](x: seq[n, d]) -> seq[n, d] {
    return geometric_attention[1, normalised = normalised](x)
}
"""


@pytest.mark.goldens("ndr", "a_*")
@pytest.mark.parametrize("normalised", [False, True], ids=["", "normalised"])
def test_nearest_matches(golden: Golden, normalised: bool) -> None:
    """Positions are unit vectors, so the queries equal the logits and the results equal the weights."""
    names = [name.removesuffix("_lens") for name in golden.arrays if name.endswith("_lens")]
    assert names
    end = "_l1" if normalised else ""
    for name in names:
        logits, lengths, probe = (golden[f"{name}_{word}"] for word in ("logits", "lens", "probe"))
        n = logits.shape[-1]
        # At extreme logits, the program's own sums have an error of 2e-5.
        tolerance = 1e-4 if "extreme" in golden.name or "extreme" in name else TOLERANCE
        identity, zeros = torch.eye(n, dtype=golden.dtype), torch.zeros(2, n, dtype=golden.dtype)
        results = []
        for logit, length in zip(logits.requires_grad_(), lengths, strict=True):
            block = "geometric_attention"
            weights: Weights = {f"{block}.{word}.weight": identity for word in ("key", "value", "output")}
            weights |= {f"{block}.query.weight": logit.T, f"{block}.query_bias": zeros[0]}
            weights |= {f"{block}.direction.weight": zeros, f"{block}.direction.bias": zeros[:, 0]}
            weights |= {f"{block}.content_scale": identity[0, :1], f"{block}.direction_scale": zeros[0, :1]}
            weights |= {f"{block}.score_bias": zeros[0, :1]}
            program = Program(CORE, golden, weights, d=n, normalised=normalised)
            results.append(program(identity[None], x=length[None])[0])
        result = torch.stack(results)
        close(golden, result, f"{name}_weights{end}", tolerance)
        (gradient,) = torch.autograd.grad((result * probe).sum(), logits)
        close(golden, gradient, f"{name}_grad_logits{end}", max(tolerance, GRADIENT))


# Attention alone

ATTEND = "model attend[heads: int, head_dim: int, normalised = {}](x: seq[n, d]) -> seq[n, d] {{ return {}(x) }}"


@pytest.mark.goldens("ndr", "b_*", "b2_*", "e_*", "f_*")
def test_attention(golden: Golden) -> None:
    text = ATTEND.format(str("l1norm" in golden.name).lower(), attention_of(golden))
    weights = attention_weights(golden, attention_of(golden).partition("[")[0])
    program = Program(text, golden, weights, **sizes(golden))
    x = golden["x"].requires_grad_()
    result = program(x, x=golden["lens"])
    close(golden, result, "out", TOLERANCE)
    _, block = attending(program.module)
    close(golden, block.weights(x, x, mask_m=~golden["pad_mask"].bool()), "weights", TOLERANCE)
    compare_gradient(golden, result, x)


# Layers

LAYERS = """
model layers[heads: int, head_dim: int, ff: int, steps: int, normalised: bool](x: seq[n, d]) -> seq[n, d] {{
    h = {begin}
    repeat steps {{ h <- {layer}[{attend}, ff{more}](h) }}
    return h
}}
"""


def layers(golden: Golden, layer: str, begin: str = "x") -> Program:
    update = ", tanh" if layer == "gated_layer" and "p_ln_update_g" not in golden else ""
    text = LAYERS.format(begin=begin, layer=layer, attend=attention_of(golden), more=update)
    steps = len(golden["states"]) if "states" in golden else 1
    statics = {**sizes(golden), "steps": steps, "normalised": "nogate" in golden.name}
    weights = layer_weights(golden, layer)
    return Program(f"{page('data_router')}\n{text}", golden, weights, "layers", **statics)


@pytest.mark.goldens("ndr", "c_*", "d_*", "g_*", "g2_*")
def test_layers_with_copy_gates(golden: Golden) -> None:
    program = layers(golden, "gated_layer")
    x = golden["x"].requires_grad_()
    calls = watched(program.module)
    result = program(x, x=golden["lens"])
    name, block = attending(program.module)
    tanh = "p_ln_update_g" not in golden
    updates = [torch.tanh(out) for out in calls["feedforward"].results] if tanh else calls["norm_2"].results
    values = {
        "weights": [
            block.weights(*inputs, mask_m=words["mask_m"]) for inputs, words, _ in zip(*calls[name], strict=True)
        ],
        "attn_out": calls[name].results,
        "merged": calls["norm"].results,
        "update": updates,
        "gate": [torch.sigmoid(out) for out in calls["feedforward_2"].results],
        "states" if "states" in golden else "out": calls["copy_gate"].results,
    }
    for word, steps in values.items():
        compare_steps(golden, steps, word)
    assert result is calls["copy_gate"].results[-1]
    compare_gradient(golden, result, x)


@pytest.mark.goldens("ndr", "i_*", "i2_*", "j_*", "k_*")
def test_universal_layers(golden: Golden) -> None:
    placed = "pos_table" in golden
    program = layers(golden, "universal_layer", "absolute_positions(x)" if placed else "x")
    x = golden["x"].requires_grad_()
    calls = watched(program.module)
    result = program(x, x=golden["lens"])
    name, block = attending(program.module)
    if placed:
        close(golden, calls["absolute_positions"].results[0], "layer_in", TOLERANCE)
        empty = program.module.get_submodule("absolute_positions")(torch.zeros_like(golden["x"][:1]))
        close(golden, empty, "pos_table", TOLERANCE)
    steps = [block.weights(*inputs, mask_m=words["mask_m"]) for inputs, words, _ in zip(*calls[name], strict=True)]
    close(golden, torch.stack(steps), "weights", TOLERANCE)
    close(golden, torch.stack(calls["norm_2"].results), "states", TOLERANCE)
    compare_gradient(golden, result, x)


# Adaptive computation time

SCRIPTED = """
model scripted[steps: int, epsilon: float, variant: symbol](x: seq[n, d]) -> seq[n, d] {
    repeat steps halting x as h by act[variant, epsilon] { x <- linear[d, bias = false](x) }
    return x
}
"""
"""The state concatenates the results of all steps; the layer rotates the next one to the front."""

ADAPTIVE = """
model adaptive_model[
    heads: int, head_dim: int, ff: int, steps: int, epsilon: float, variant: symbol](x: seq[n, d]) -> seq[n, d] {{
    return adaptive_layers[{attend}, ff, steps, variant = variant, epsilon = epsilon](x)
}}
"""
VARIANTS = pytest.mark.parametrize(("letter", "variant"), [("A", "graves"), ("U", "dehghani")], ids=["A", "U"])


def compare_halting(golden: Golden, module: Architecture, runs: list[list[Ledger]], letter: str) -> Tensor:
    """Compares the parts of the regulariser, then returns it."""
    ((_, *halting_states),) = runs
    last = halting_states[-1]
    close(golden, last.steps.to(golden.dtype), f"{letter}_n_updates", 0)
    close(golden, last.remainder, f"{letter}_remainder", TOLERANCE)
    assert len(halting_states) == golden.number(f"{letter}_steps_run")
    # In variant A, the last step forces live positions to halt; a block cannot know which step is the last.
    spent = last.spent.masked_fill(last.live, 1) if letter == "A" else last.spent
    close(golden, spent, f"{letter}_p_cum", TOLERANCE)
    regulariser = module.ponder * golden["loss_weight"]
    close(golden, regulariser, f"{letter}_reg_loss", TOLERANCE)
    return regulariser


@VARIANTS
@pytest.mark.goldens("ndr", "h_*")
def test_halting_of_prescribed_states(golden: Golden, letter: str, variant: str) -> None:
    states = golden["states"]
    count, b, n, d = states.shape
    forward = torch.roll(torch.eye(count), 1, dims=1).to(golden.dtype)
    weights: Weights = {
        "act.halt.weight": torch.cat((golden["p_w_halt"], torch.zeros((count - 1) * d, dtype=golden.dtype))),
        "act.halt.bias": "p_b_halt",
        "linear.weight": torch.kron(forward, torch.eye(d, dtype=golden.dtype)),
    }
    statics: dict[str, Any] = {"d": count * d, "steps": golden.number("max_steps"), "variant": variant}
    program = Program(SCRIPTED, golden, weights, epsilon=1 - float(golden["threshold"]), **statics)
    runs = watch_halting(program.module)
    result = program(states.permute(1, 2, 0, 3).reshape(b, n, count * d), x=golden["lens"])
    close(golden, result[..., :d], f"{letter}_out", TOLERANCE)
    compare_halting(golden, program.module, runs, letter)


@VARIANTS
@pytest.mark.goldens("ndr", "h2_*")
def test_adaptive_computation_time(golden: Golden, letter: str, variant: str) -> None:
    text = f"{page('data_router')}\n{ADAPTIVE.format(attend=PLAIN)}"
    weights = layer_weights(golden, "adaptive_layers.universal_layer")
    weights |= {"adaptive_layers.act.halt.weight": "p_w_halt", "adaptive_layers.act.halt.bias": "p_b_halt"}
    statics = {**sizes(golden), "steps": golden.number("max_steps"), "variant": variant}
    program = Program(text, golden, weights, "adaptive_model", epsilon=1 - float(golden["threshold"]), **statics)
    x = golden["x"].requires_grad_()
    runs = watch_halting(program.module)
    result = program(x, x=golden["lens"])
    close(golden, result, f"{letter}_out", TOLERANCE)
    regulariser = compare_halting(golden, program.module, runs, letter)
    (gradient,) = torch.autograd.grad((result * golden["probe"]).sum() + regulariser, x)
    close(golden, gradient, f"{letter}_grad_x", THROUGH_STEPS)


# Classifiers


@pytest.mark.goldens("ndr", "l_*", "l2_*")
def test_classifiers(golden: Golden) -> None:
    rows, d = golden["p_embedding"].shape
    tokens, lengths = golden["tokens"].long(), golden["lens"].long()
    end, begin = rows - 2, rows - 1
    sequence = torch.zeros(len(tokens), tokens.shape[1] + 2, dtype=torch.int64)
    sequence[:, 0] = begin
    for row, word, length in zip(sequence, tokens, lengths.tolist(), strict=True):
        row[1 : length + 1] = word[:length]
        row[length + 1] = end
    weights = layer_weights(golden, "gated_layer") | {"embed.weight": "p_embedding"}
    weights |= pair("readout.linear", "p_{}_out")
    statics = {"d": d, "heads": len(golden["p_wq"]), "ff": len(golden["p_w_ff1"]), "steps": golden.number("n_steps")}
    column = "first" if "first" in golden.name else "last"
    program = Program(
        page("data_router"),
        golden,
        weights,
        "ndr",
        column=column,
        vocab=rows,
        classes=len(golden["p_b_out"]),
        **statics,
    )
    close(golden, program(sequence, x=lengths + 2), "logits", TOLERANCE)
