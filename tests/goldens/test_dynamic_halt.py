"""Dynamic Halt's golden arrays against programs in archlang that use the library's layers."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.masks import code_inputs
from tests.goldens.golden import (
    TOLERANCE,
    Golden,
    Program,
    Weights,
    close,
    gradients_close,
    halting_block,
    page,
    pair,
    relatively_close,
    watch,
    watch_halting,
)  # fmt: skip

SUM = 1e-4
"""the tolerance of a sum over all outputs, whose terms nearly cancel"""
Statics = dict[str, Any]  # Any: statics are of several types
POOL = {"mean": "mean", "end": "last", "cls": "first"}


def flag(golden: Golden, name: str) -> bool:
    return bool(golden.number(f"cfg.{name}"))


def run(program: Program, *fields: Tensor, **lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the result, and the ponder cost of each sample [b]."""
    module = program.module
    output = module.program.code.function(module, *code_inputs(module.program, fields, lengths))
    if module.program.code.extras:
        result, ponder, _ = output
        return result, ponder
    return output, torch.zeros(len(fields[0]), dtype=output.dtype)


# Arrays of the parameters in a golden file


def maps(ours: str, theirs: str) -> Weights:
    """Returns the weights of two consecutive linear maps."""
    return pair(f"{ours}.hidden", f"p.{theirs}.{{}}1") | pair(f"{ours}.output", f"p.{theirs}.{{}}2")


def norm(ours: str, theirs: str) -> Weights:
    return pair(ours, f"p.{theirs}.{{}}", "gb")


def attention(ours: str, theirs: str) -> Weights:
    return {f"{ours}.{name}.weight": f"p.{theirs}w{name[0]}" for name in ("query", "key", "value", "output")}


def plain_layer(golden: Golden, ours: str, theirs: str) -> Weights:
    """Returns the weights of a `halting_layer`."""
    weights = norm(f"{ours}.before", f"{theirs}ln_attn") | attention(f"{ours}.attention", f"{theirs}self_attn.")
    weights |= norm(f"{ours}.norm", f"{theirs}ln_ff") | maps(f"{ours}.feedforward", f"{theirs}ff")
    return weights | gate(golden, ours, theirs)


def chunk_layer(golden: Golden, ours: str, theirs: str) -> Weights:
    weights = norm(f"{ours}.norm", f"{theirs}ln_attn") | attention(f"{ours}.attention", f"{theirs}self_attn.")
    weights |= norm(f"{ours}.norm_2", f"{theirs}ln_cross_q") | norm(f"{ours}.norm_3", f"{theirs}ln_cross_mem")
    weights |= attention(f"{ours}.attention_2", f"{theirs}cross_attn.")
    weights |= norm(f"{ours}.norm_4", f"{theirs}ln_ff") | maps(f"{ours}.feedforward", f"{theirs}ff")
    return weights | gate(golden, ours, theirs)


def gate(golden: Golden, ours: str, theirs: str) -> Weights:
    return maps(f"{ours}.gate", f"{theirs}gate") if f"p.{theirs}gate.w1" in golden else {}


def memory_update(ours: str, theirs: str) -> Weights:
    weights = norm(f"{ours}.norm", f"{theirs}ln_q") | norm(f"{ours}.norm_2", f"{theirs}ln_kv")
    weights |= attention(f"{ours}.attention", f"{theirs}attn.") | norm(f"{ours}.norm_3", f"{theirs}ln_ff")
    return weights | maps(f"{ours}.feedforward", f"{theirs}ff")


def sizes(golden: Golden, prefix: str = "") -> Statics:
    statics = {"heads": golden.number("cfg.heads"), "head_dim": golden.number("cfg.head_dim")}
    name = f"p.{prefix}ff.w1"
    return statics | ({"ff": len(golden[name])} if name in golden else {})


# Attention alone

ATTEND = """
model attend[heads: int, head_dim: int, position: symbol, causal: bool, rule: symbol](
    q: seq[n, d], kv: seq[m, e]) -> seq[n, d] {
    return attention[heads, position, causal, head_dim = head_dim, causal_rule = rule, init = scaled](q, kv)
}
"""


@pytest.mark.goldens("halt", "a_attn_*")
def test_attention(golden: Golden) -> None:
    q, kv, q_mask, kv_mask = golden["in.q"], golden["in.kv"], golden["in.q_mask"].bool(), golden["in.kv_mask"].bool()
    has_positions = flag(golden, "xpos")
    program = Program(
        ATTEND,
        golden,
        attention("attention", ""),
        d=q.shape[-1],
        e=kv.shape[-1],
        position="xpos" if has_positions else "none",
        causal=flag(golden, "causal_config"),
        rule="always" if has_positions else "equal_lengths",
        **sizes(golden),
    )
    if not has_positions:
        output = program.module.program.code.function(program.module, q, kv, q_mask, kv_mask)
        close(golden, output, "out", where=q_mask)
        return
    # Distant positions become distant columns with padding between them.
    at = golden["in.positions"].long()
    spread = [scattered(values, real, at) for values, real in ((q, q_mask), (kv, kv_mask))]
    masks = [scattered(real[..., None], real, at)[..., 0] for real in (q_mask, kv_mask)]
    spread_output = program.module.program.code.function(program.module, *spread, *masks)
    out = torch.zeros_like(golden["out"])
    for sample, real in enumerate(q_mask):
        out[sample, real] = spread_output[sample, at[sample, real]]
    close(golden, out, "out", where=q_mask)


def scattered(values: Tensor, mask: Tensor, positions: Tensor) -> Tensor:
    """Returns the real values at their positions, and zeros elsewhere."""
    columns = values.new_zeros(len(values), int(positions.max()) + 1, values.shape[-1])
    for sample, real in enumerate(mask):
        columns[sample, positions[sample, real]] = values[sample, real]
    return columns


# Single layers

PLAIN = """
model one_layer[heads: int, ff: int, head_dim: int, gated: bool, causal: bool](
    x: seq[n, d], kv: seq[n, d]) -> seq[n, d] {
    return halting_layer[heads, ff, head_dim, gated, causal](x, kv)
}
"""
CHUNK = """
model one_layer[heads: int, ff: int, head_dim: int, gated: bool, causal: bool](
    x: seq[n, d], memory: seq[k, d]) -> seq[n, d] {
    return chunk_layer[heads, ff, head_dim, gated, causal, equal_lengths = true](x, memory)
}
"""
UPDATE = """
model one_layer[heads: int, head_dim: int, causal: bool](memory: seq[k, d], x: seq[n, d]) -> seq[k, d] {
    return memory_update[heads, 1, head_dim, causal, equal_lengths = true](memory, x)
}
"""


@pytest.mark.goldens("halt", "b_block_*")
def test_layers(golden: Golden) -> None:
    x, mask = golden["in.x"], golden["in.mask"].bool()
    statics = {**sizes(golden), "d": x.shape[-1], "causal": flag(golden, "causal"), "gated": "p.gate.w1" in golden}
    if "p.ln_kv.g" in golden:
        weights = memory_update("memory_update.stack.0", "")
        del statics["gated"], statics["ff"]
        program = Program(page("dynamic_halt") + UPDATE, golden, weights, "one_layer", **statics)
        memory = golden["in.memory"]
        slots = torch.full((len(memory),), memory.shape[1])
        close(golden, program(memory, x, memory=slots, x=mask.sum(1)), "out")
        return
    if "p.cross_attn.wq" in golden:
        weights, memory = chunk_layer(golden, "chunk_layer", ""), golden["in.memory"]
        slots = torch.full((len(memory),), memory.shape[1])
        program = Program(page("dynamic_halt") + CHUNK, golden, weights, "one_layer", **statics)
        close(golden, program(x, memory, x=mask.sum(1), memory=slots), "out", where=mask)
        return
    weights = plain_layer(golden, "halting_layer", "")
    program = Program(page("dynamic_halt") + PLAIN, golden, weights, "one_layer", **statics)
    output = program(x, golden["in.kv"], x=mask.sum(1), kv=mask.sum(1))
    close(golden, output, "out", where=mask)


# Encoders

ENCODER = """
model encode[heads: int, ff: int, layers: int, head_dim: int, causal: bool{declared}](x: seq[n, d]) -> vec[d] {{
    return {framed} |> {kind}_layers[heads, ff, layers, head_dim{statics}, causal] |> {pool}
}}
"""
OF_UNIVERSAL = {
    "declared": ", gated: bool, transition: bool, global: bool", "statics": ", gated, transition, global",
}  # fmt: skip


def probabilities_of(module: Architecture) -> list[Tensor]:
    """The probabilities that the halting block computes in further calls of it."""
    probabilities: list[Tensor] = []
    halting_block(module).get_submodule("output").register_forward_hook(
        lambda _, __, logit: probabilities.append(torch.sigmoid(logit[..., 0]).detach())
    )
    return probabilities


def framed(golden: Golden) -> tuple[str, Weights]:
    """Returns the first expression of a model and its weights: a model that is not causal adds START and END."""
    if flag(golden, "causal"):
        return "x", {}
    return "start_end(x)", {"start_end.start": "p.start", "start_end.end": "p.end"}


def compare_objective(
    golden: Golden, sequence: Tensor | None, pooled: Tensor | None, ponder: Tensor | None = None
) -> None:
    """Compares the sum of weighted results and the ponder, and its gradients."""
    total = torch.zeros((), dtype=golden.dtype)
    if sequence is not None:
        total = total + (sequence * golden["obj.r_seq"])[golden["out.mask"].bool()].sum()
    if pooled is not None:
        total = total + (pooled * golden["obj.r_glob"]).sum()
    if ponder is not None:
        total = total + ponder.sum()
    relatively_close(golden, total[None], "obj.value", SUM)
    gradients_close(golden, total)


def encoder(golden: Golden, kind: str, weights: Weights, **more: Any) -> tuple[Program, str]:  # Any: statics
    """Returns an encoder, and the block that pools its sequence."""
    begin, framing = framed(golden)
    pool = POOL[str(golden.arrays["cfg.pooling"])]
    words = OF_UNIVERSAL if kind == "universal" else dict.fromkeys(OF_UNIVERSAL, "")
    text = page("dynamic_halt") + ENCODER.format(framed=begin, kind=kind, pool=pool, **words)
    layers, causal = golden.number("cfg.layers"), flag(golden, "causal")
    statics = {"d": golden["in.x"].shape[-1], "layers": layers, "causal": causal, **more}
    return Program(text, golden, weights | framing, "encode", **statics), pool


@pytest.mark.goldens("halt", "b_transformer_*")
def test_transformers(golden: Golden) -> None:
    weights: Weights = {}
    for index in range(golden.number("cfg.layers")):
        weights |= plain_layer(golden, f"transformer_layers.stack.{index}.halting_layer", f"layer{index}.")
    program, pool = encoder(golden, "transformer", weights, **sizes(golden, "layer0."))
    calls = watch(program.module.get_submodule(pool))
    pooled = program(golden["in.x"], x=golden["in.lengths"])
    sequence = calls.inputs[0][0]
    close(golden, sequence, "out.sequence", where=golden["out.mask"].bool())
    close(golden, pooled, "out.global")
    compare_objective(golden, sequence, pooled)


@pytest.mark.goldens("halt", "c_*", "d_*", "e_*")
def test_universal_transformers_that_halt(golden: Golden) -> None:
    halt = "global_halt" if flag(golden, "global_halt") else "token_halt"
    weights = plain_layer(golden, "universal_layers.halting_layer", "layer.")
    weights |= maps(f"universal_layers.{halt}", "halt")
    flags = {"gated": "gated", "transition": "transition_based_halt", "global": "global_halt"}
    statics = {name: flag(golden, theirs) for name, theirs in flags.items()}
    program, pool = encoder(golden, "universal", weights, **sizes(golden, "layer."), **statics)
    module = program.module
    calls, runs, probabilities = watch(module.get_submodule(pool)), watch_halting(module), probabilities_of(module)
    pooled, ponder = run(program, golden["in.x"], x=golden["in.lengths"])
    sequence, ((*_, last),) = calls.inputs[0][0], runs
    close(golden, sequence, "out.sequence", where=golden["out.mask"].bool())
    close(golden, pooled, "out.global")
    close(golden, ponder, "out.act_loss")
    accepted = golden["out.accepted_layers"]
    assert last.steps.equal(accepted if accepted.dim() == 1 else accepted.clamp(min=0))
    # If the last samples halt at their length cap, our loop ends one step earlier.
    steps = len(runs[0]) - 1
    assert golden.number("out.layers_run") - 1 <= steps <= golden.number("out.layers_run")
    expected = golden["out.cond_halt"]
    for probability, row in zip(probabilities, expected, strict=False):
        known = row.isfinite()
        torch.testing.assert_close(probability[known], row[known], atol=TOLERANCE, rtol=0)
    assert expected[len(probabilities) :].isnan().all() or len(probabilities) >= len(expected) - 1
    compare_objective(golden, sequence, pooled, ponder)


# Bottlenecks

BOTTLENECK = """
model encode[
    heads: int, ff: int, layers: int, updates: int, size: int, count: int, balanced: bool, slots: int, head_dim: int,
    causal: bool{declared}](x: seq[n, d]) -> {result} {{
    return x |> {block}[
        heads, ff, layers, updates, count, size, balanced, slots, readout = {readout}, head_dim = head_dim,
        causal = causal, equal_lengths = true{chosen}]{pool}
}}
"""
HALTS = {"declared": ", gated: bool, transition: bool", "chosen": ", gated = gated, transition = transition"}
FIXED = 5
"""the number of chunks of the fixed recurrence"""


def bottleneck(golden: Golden, readout: str) -> Program:
    """Returns the encoder whose result is its emitted sequence, or its pooled memory."""
    halts = "p.halt.w1" in golden
    name = "gated_bottleneck_layers" if halts else "bottleneck_layers"
    fixed = "fixed" in golden.name
    weights: Weights = {f"{name}.learned.weight": "p.mem_init"}
    for index in range(golden.number("cfg.update_layers")):
        weights |= memory_update(f"{name}.memory_update.stack.{index}", f"mem_update{index}.")
    if halts:
        weights |= chunk_layer(golden, f"{name}.chunk_layer", "layer.") | maps(f"{name}.global_halt", "halt")
    else:
        for index in range(golden.number("cfg.layers")):
            weights |= chunk_layer(golden, f"{name}.stack.{index}.chunk_layer", f"layer{index}.")
    if readout == "memory":
        weights |= norm(f"{name}.norm", "readout_ln")
        result, pool = "vec[d]", f" |> {POOL[str(golden.arrays['cfg.pooling'])]}"
    else:
        result, pool = "seq[n, d]", ""
    words = HALTS if halts else dict.fromkeys(HALTS, "")
    text = BOTTLENECK.format(result=result, readout=readout, pool=pool, block=name, **words)
    statics: Statics = {
        **sizes(golden, "layer." if halts else "layer0."), "d": golden["in.x"].shape[-1],
        "layers": golden.number("cfg.layers"), "updates": golden.number("cfg.update_layers"),
        "slots": golden.number("cfg.memory_size"), "causal": flag(golden, "causal"), "balanced": not fixed,
        "count": FIXED if fixed else 0, "size": 0 if fixed else golden.number("cfg.model_chunk_size"),
    }  # fmt: skip
    if halts:
        statics |= {"gated": flag(golden, "gated"), "transition": flag(golden, "transition_based_halt")}
    return Program(page("dynamic_halt") + text, golden, weights, "encode", **statics)


@pytest.mark.goldens("halt", "f_*", "g_*", "h_*")
def test_bottlenecks(golden: Golden) -> None:
    """Two programs with the same weights return the emitted sequence and the final memory."""
    x, mask = golden["in.x"], golden["out.mask"].bool()
    emitting, remembering = bottleneck(golden, "sequence"), bottleneck(golden, "memory")
    sequence = emitting(x, x=golden["in.lengths"])
    close(golden, sequence, "out.sequence", where=mask)
    halts = "p.halt.w1" in golden
    if halts:
        runs, probabilities = watch_halting(remembering.module), probabilities_of(remembering.module)
    pooled, ponder = run(remembering, x, x=golden["in.lengths"])
    if halts:
        close(golden, ponder, "out.act_loss")
        steps = [halting_states[-1].steps for halting_states in runs]
        accepted = torch.cat(steps, dim=1) if flag(golden, "causal") else torch.stack(steps, dim=1)
        published = golden["out.accepted_layers"]  # -1 for a chunk that a sample does not have
        assert accepted[published >= 0].equal(published[published >= 0])
        # If the last samples of a chunk halt at their length cap, our loop ends one step earlier.
        calls = golden.number("out.halt_calls")
        assert calls - len(runs) <= len(probabilities) <= calls
    close(golden, pooled, "out.global")
    compare_objective(golden, sequence, pooled, ponder if halts else None)


# Classifiers and language models

SIDE = """
block side(h: seq[n, d]) -> seq[n, d] {{
    return transformer_layers[heads = {heads}, ff = {ff}, layers = {layers}, head_dim = {head_dim}](h)
}}
"""
LANGUAGE = """
model next_token[d: int, heads: int, ff: int, layers: int, head_dim: int](x: tokens[n]) -> logits[n, classes] {
    return embed[d, init = small](x) |> transformer_layers[heads, ff, layers, head_dim, true] |> mlp[d, classes]
}
"""


def whole_weights(golden: Golden, path: str) -> Weights:
    weights: Weights = maps("mlp", "head")
    for index in range(golden.number("cfg.layers")):
        weights |= plain_layer(golden, f"{path}transformer_layers.stack.{index}.halting_layer", f"layer{index}.")
    return weights


def whole_sizes(golden: Golden) -> tuple[Statics, Statics]:
    """Returns the statics of the encoder, and those of the model around it."""
    rows, d = golden["p.embed"].shape
    inside = {**sizes(golden, "layer0."), "layers": golden.number("cfg.layers")}
    return inside, {"d": d, "vocab": rows, "classes": len(golden["p.head.b2"])}


@pytest.mark.goldens("halt", "heads_siamese*")
def test_siamese_classifier(golden: Golden) -> None:
    inside, around = whole_sizes(golden)
    weights = whole_weights(golden, "encode.") | {"table.weight": "p.embed"}
    weights |= {"frame.start": "p.start", "frame.end": "p.end"}
    text = page("dynamic_halt") + SIDE.format(**inside)
    program = Program(text, golden, weights, "siamese", read="side", **around)
    tokens = golden["in.tokens1"].long(), golden["in.tokens2"].long()
    lengths = {side: golden[f"in.mask{number}"].sum(1).long() for number, side in ((1, "left"), (2, "right"))}
    logits = program(*tokens, **lengths)
    close(golden, logits, "out.logits")
    close(golden, F.cross_entropy(logits, golden["in.labels"].long())[None], "out.loss")


@pytest.mark.goldens("halt", "heads_flipflop*")
def test_flipflop_language_model(golden: Golden) -> None:
    inside, around = whole_sizes(golden)
    weights = whole_weights(golden, "") | {"embed.weight": "p.embed"}
    program = Program(page("dynamic_halt") + LANGUAGE, golden, weights, "next_token", **inside, **around)
    logits = program(golden["in.model_tokens"].long())
    close(golden, logits, "out.logits")
    mask, labels = golden["in.loss_mask"], golden["in.labels"].to(golden.dtype)
    losses = F.binary_cross_entropy_with_logits(logits[..., 0], labels, reduction="none")
    close(golden, ((losses * mask).sum() / mask.sum())[None], "out.loss")
