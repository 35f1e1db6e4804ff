"""Perceiver IO."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from tests.goldens.golden import Golden, Program, relatively_close

TOLERANCE = 2e-5
NORM = {"weight": "g", "bias": "b"}


def norm(path: str, array: str) -> dict[str, str | Tensor]:
    return {f"{path}.{name}": f"p.{array}.{short}" for name, short in NORM.items()}


def feedforward(path: str, array: str) -> dict[str, str | Tensor]:
    return {
        f"{path}.linear.weight": f"p.{array}.w1",
        f"{path}.linear.bias": f"p.{array}.w1_b",
        f"{path}.linear_2.weight": f"p.{array}.w2",
        f"{path}.linear_2.bias": f"p.{array}.w2_b",
    }


@pytest.mark.goldens("modern", "perceiver_io")
def test_perceiver_io(golden: Golden, folder: Path) -> None:
    x, q, latents = golden["in.x"], golden["in.q"], golden["p.latents"]
    tied, depth = bool(golden["cfg.tied_layers"]), golden.number("cfg.depth")
    heads, cross_heads = golden.number("cfg.latent_heads"), golden.number("cfg.cross_heads")
    head_dim = len(golden["p.layer0.attn.q"]) // heads
    cross_head_dim = len(golden["p.cross.q"]) // cross_heads
    # The keys and values of a file are the halves of one matrix.
    keys_and_values = {}
    weights: dict[str, str | Tensor] = {}

    def attend(path: str, array: str) -> None:
        weights.update(
            {
                f"{path}.query.weight": f"p.{array}.q",
                f"{path}.linear.weight": f"p.{array}.o",
                f"{path}.linear.bias": f"p.{array}.o_b",
            }
        )
        keys_and_values[path] = f"{array}.kv"

    inner = "perceiver_io.perceiver"
    weights[f"{inner}.learned.weight"] = "p.latents"
    attend(f"{inner}.cross_attention", "cross")
    weights |= norm(f"{inner}.norm", "cross.ln") | norm(f"{inner}.norm_2", "cross.ln_ctx")
    weights |= norm(f"{inner}.norm_3", "cross_ff.ln") | feedforward(f"{inner}.gated_feedforward", "cross_ff")
    for layer in range(1 if tied else depth):
        prefix = inner if tied else f"{inner}.stack.{layer}"
        names = ("cross_attention_2", "norm_4", "norm_5", "gated_feedforward_2")
        if not tied:
            names = ("cross_attention", "norm", "norm_2", "gated_feedforward")
        attend(f"{prefix}.{names[0]}", f"layer{layer}.attn")
        weights |= norm(f"{prefix}.{names[1]}", f"layer{layer}.attn.ln")
        weights |= norm(f"{prefix}.{names[2]}", f"layer{layer}.ff.ln")
        weights |= feedforward(f"{prefix}.{names[3]}", f"layer{layer}.ff")
    attend("perceiver_io.cross_attention", "dec")
    weights |= norm("perceiver_io.norm", "dec.ln") | norm("perceiver_io.norm_2", "dec.ln_ctx")
    weights |= norm("perceiver_io.norm_3", "decoder_ff.ln")
    weights |= feedforward("perceiver_io.gated_feedforward", "decoder_ff")
    weights |= {"linear.weight": "p.logits.w", "linear.bias": "p.logits.b"}
    halves: dict[str, str | Tensor] = {
        f"{path}.{name}.weight": golden[f"p.{array}"].chunk(2)[half]
        for path, array in keys_and_values.items()
        for half, name in enumerate(("key", "value"))
    }
    count, width = latents.shape
    statics = (
        f"latents = {count}, width = {width}, depth = {depth}, heads = {heads}, head_dim = {head_dim}, "
        f"cross_heads = {cross_heads}, cross_head_dim = {cross_head_dim}, tied = {str(tied).lower()}"
    )
    fields = f"x: seq[n, {x.shape[2]}], q: seq[m, {q.shape[2]}]"
    head = "use archlang.models.perceiver\n"
    out = golden["out.o"].shape[2]
    text = f"model m({fields}) -> seq[m, {out}] {{ return linear[{out}](perceiver_io[{statics}](x, q)) }}\n"
    program = Program(head + text, golden, {**weights, **halves}, folder)
    leaves = {"x": x.clone().requires_grad_(), "q": q.clone().requires_grad_()}
    result = program(*leaves.values(), x=golden["in.lengths"])
    program.close(result, "out.o", TOLERANCE)
    objective = (result * golden["obj.r_o"]).sum()
    parameters = dict(program.module.named_parameters())
    for path, array in keys_and_values.items():
        pair = [parameters[f"{path}.{name}.weight"] for name in ("key", "value")]
        gradient = torch.cat(torch.autograd.grad(objective, pair, retain_graph=True))
        relatively_close(golden, gradient, f"grad.{array}", TOLERANCE)
    gradients = program.gradients(objective, leaves)
    for name in leaves:
        relatively_close(golden, gradients.pop(name), f"grad.in.{name}", TOLERANCE)
    for array, gradient in gradients.items():
        relatively_close(golden, gradient, array.replace("p.", "grad.", 1), TOLERANCE)

    only_latents = f"model z(x: seq[n, {x.shape[2]}]) -> seq[{count}, {width}] {{ return perceiver[{statics}](x) }}\n"
    own = {
        name.removeprefix("perceiver_io."): array
        for name, array in {**weights, **halves}.items()
        if name.startswith(inner)
    }
    encoder = Program(head + only_latents, golden, own, folder)
    encoder.close(encoder(x, x=golden["in.lengths"]), "out.latents", TOLERANCE)
