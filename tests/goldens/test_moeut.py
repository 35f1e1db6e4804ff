"""MoEUT's golden arrays against the model of the library."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.goldens.golden import TOLERANCE, Golden, Program, Weights, close, gradients_close, page, pair


def layer_weights(golden: Golden, layer: int) -> Weights:
    heads, experts = golden.number("cfg.heads"), golden.number("cfg.att_experts")
    ours, theirs = f"moeut_states.stack.{layer}", f"p.layer{layer}"
    weights = pair(f"{ours}.norm", f"{theirs}.ln1.{{}}", "gb") | pair(f"{ours}.norm_2", f"{theirs}.ln2.{{}}", "gb")
    weights[f"{ours}.linear.weight"] = f"{theirs}.ff_sel"
    for expert in range(golden.number("cfg.ff_experts")):
        for linear, name in (("linear", "ff_up"), ("linear_2", "ff_down")):
            weights[f"{ours}.sigma_moe.experts.{expert}.{linear}.weight"] = golden[f"{theirs}.{name}"][expert].T
    for head in range(heads):
        own = f"{ours}.stack.{head}"

        def of_head(name: str, axis: int = 0, head: int = head) -> Tensor:
            return golden[f"{theirs}.{name}"].chunk(heads, axis)[head]

        weights |= {
            f"{own}.rotary_head.linear.weight": of_head("q"),
            f"{own}.rotary_head.linear_2.weight": of_head("k"),
        }
        weights[f"{own}.linear_2.weight"] = of_head("sel_o")
        if experts == 1:
            weights |= {f"{own}.linear.weight": of_head("v"), f"{own}.linear_3.weight": of_head("o", 1)}
            continue
        weights[f"{own}.linear.weight"] = of_head("sel_v")
        for block, name in (("chosen_linear", "v"), ("chosen_linear_2", "o")):
            for expert, weight in enumerate(of_head(name)):
                weights[f"{own}.{block}.experts.{expert}.linear.weight"] = weight.T
    return weights


def program(golden: Golden) -> Program:
    names = ("layers", "group", "heads", "head_dim", "ff_experts", "ff_k", "att_experts", "att_k")
    statics = {name: golden.number(f"cfg.{name}") for name in names}
    vocab, d = golden["p.embed"].shape
    weights = pair("norm", "p.out_ln.{}", "gb") | pair("linear", "p.lm.{}") | {"embed.weight": "p.embed"}
    for layer in range(golden.number("cfg.group")):
        weights |= layer_weights(golden, layer)
    return Program(
        page("moeut"), golden, weights, "moeut", **statics, vocab=vocab, d=d,
        ff_width=golden.number("cfg.ff_expert_size"), causal=bool(golden.number("cfg.causal")),
    )  # fmt: skip


def entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long(), ignore_index=-100)


@pytest.mark.goldens("modern", "moeut_lm*")
def test_a_language_model_equals_the_authors_in_logits_losses_and_gradients(golden: Golden) -> None:
    model = program(golden)
    logits = model(golden["in.ids"].long())
    close(golden, logits, "out.logits")
    auxiliary = dict(model.module.losses)
    value = golden["cfg.entropy_reg"] * auxiliary.pop("feedforward")
    if auxiliary:
        value = value + golden["cfg.att_entropy_reg"] * auxiliary.pop("attention")
    assert not auxiliary
    close(golden, value, "out.reg_loss")
    loss = entropy(logits, golden["in.targets"]) + value
    close(golden, loss, "out.loss")
    gradients_close(golden, loss)


@pytest.mark.goldens("modern", "moeut_padded_bidir")
def test_a_padded_encoder_equals_the_authors_at_real_positions(golden: Golden) -> None:
    """The program's auxiliary losses count padding too, so they are compared with its raw scores of real positions."""
    model = program(golden)
    ids, lengths = golden["in.ids"].long(), golden["in.lengths"].long()
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    logits = model(ids, x=lengths)
    close(golden, logits, "out.logits", where=real)
    close(golden, entropy(logits, golden["in.targets"]), "out.ce")

    def negative_entropy(name: str) -> Tensor:
        probabilities = golden[name].softmax(-1).transpose(0, 1)  # sample, repeat, position, …
        used = torch.stack([own[:, :length].mean((0, 1)) for own, length in zip(probabilities, lengths, strict=True)])
        return (used * used.log()).sum(-1).mean()

    layers = range(golden.number("cfg.group"))
    feedforward = sum(negative_entropy(f"out.layer{layer}.ff_sel_raw") for layer in layers)
    attention = sum(negative_entropy(f"out.layer{layer}.{kind}_sel_raw") for layer in layers for kind in "vo")
    for name, expected in (("feedforward", feedforward), ("attention", attention)):
        torch.testing.assert_close(model.module.losses[name], expected, atol=TOLERANCE, rtol=0)
