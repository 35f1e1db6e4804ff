"""Perceiver IO."""

import pytest

from tests.goldens.golden import Golden, Program, Weights, close, output_close, pair


def norm(path: str, array: str) -> Weights:
    return pair(path, f"p.{array}.{{}}", "gb")


def attend(golden: Golden, path: str, array: str) -> Weights:
    """The keys and values of a file are the halves of one matrix."""
    key, value = golden[f"p.{array}.kv"].chunk(2)
    weights: Weights = {f"{path}.key.weight": key, f"{path}.value.weight": value}
    weights[f"{path}.query.weight"] = f"p.{array}.q"
    return weights | pair(f"{path}.linear", f"p.{array}.{{}}", ("o", "o_b"))


def feedforward(path: str, array: str) -> Weights:
    maps = pair(f"{path}.linear", f"p.{array}.{{}}", ("w1", "w1_b"))
    return maps | pair(f"{path}.linear_2", f"p.{array}.{{}}", ("w2", "w2_b"))


@pytest.mark.goldens("modern", "perceiver_io")
def test_perceiver_io(golden: Golden) -> None:
    x, q, latents = golden["in.x"], golden["in.q"], golden["p.latents"]
    tied, depth = bool(golden["cfg.tied_layers"]), golden.number("cfg.depth")
    heads, cross_heads = golden.number("cfg.latent_heads"), golden.number("cfg.cross_heads")
    head_dim = len(golden["p.layer0.attn.q"]) // heads
    cross_head_dim = len(golden["p.cross.q"]) // cross_heads
    inner = "perceiver_io.perceiver"
    weights: Weights = {f"{inner}.learned.weight": "p.latents"}
    weights |= attend(golden, f"{inner}.cross_attention", "cross")
    weights |= norm(f"{inner}.norm", "cross.ln") | norm(f"{inner}.norm_2", "cross.ln_ctx")
    weights |= norm(f"{inner}.norm_3", "cross_ff.ln") | feedforward(f"{inner}.gated_feedforward", "cross_ff")
    for layer in range(1 if tied else depth):
        prefix = inner if tied else f"{inner}.stack.{layer}"
        names = ("cross_attention_2", "norm_4", "norm_5", "gated_feedforward_2")
        if not tied:
            names = ("cross_attention", "norm", "norm_2", "gated_feedforward")
        weights |= attend(golden, f"{prefix}.{names[0]}", f"layer{layer}.attn")
        weights |= norm(f"{prefix}.{names[1]}", f"layer{layer}.attn.ln")
        weights |= norm(f"{prefix}.{names[2]}", f"layer{layer}.ff.ln")
        weights |= feedforward(f"{prefix}.{names[3]}", f"layer{layer}.ff")
    weights |= attend(golden, "perceiver_io.cross_attention", "dec")
    weights |= norm("perceiver_io.norm", "dec.ln") | norm("perceiver_io.norm_2", "dec.ln_ctx")
    weights |= norm("perceiver_io.norm_3", "decoder_ff.ln")
    weights |= feedforward("perceiver_io.gated_feedforward", "decoder_ff")
    weights |= pair("linear", "p.logits.{}")
    count, width = latents.shape
    statics = (
        f"latents = {count}, width = {width}, depth = {depth}, heads = {heads}, head_dim = {head_dim}, "
        f"cross_heads = {cross_heads}, cross_head_dim = {cross_head_dim}, tied = {str(tied).lower()}"
    )
    fields = f"x: seq[n, {x.shape[2]}], q: seq[m, {q.shape[2]}]"
    head = "use archlang.models.perceiver\n"
    out = golden["out.o"].shape[2]
    text = f"model m({fields}) -> seq[m, {out}] {{ return linear[{out}](perceiver_io[{statics}](x, q)) }}\n"
    result = Program(head + text, golden, weights)(x, q, x=golden["in.lengths"])
    output_close(golden, result)

    only_latents = f"model z(x: seq[n, {x.shape[2]}]) -> seq[{count}, {width}] {{ return perceiver[{statics}](x) }}\n"
    own = {name.removeprefix("perceiver_io."): array for name, array in weights.items() if name.startswith(inner)}
    encoder = Program(head + only_latents, golden, own)
    close(golden, encoder(x, x=golden["in.lengths"]), "out.latents")
