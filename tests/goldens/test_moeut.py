"""MoEUT's golden arrays against the model of the library."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.goldens.golden import Golden, Program, close, page

TOLERANCE = 2e-5
Place = tuple[str, Tensor | None, bool]
"""an array of the program, the indices of the part that a parameter holds, and whether the part is transposed"""


def layer_places(golden: Golden, layer: int) -> Iterator[tuple[str, Place]]:
    """Yields the parameters of a layer with their places."""
    heads, size = golden.number("cfg.heads"), golden.number("cfg.head_dim")
    experts, chosen = golden.number("cfg.att_experts"), golden.number("cfg.ff_experts")
    ours, theirs = f"moeut_states.stack.{layer}", f"layer{layer}"
    for norm, name in (("norm", "ln1"), ("norm_2", "ln2")):
        yield f"{ours}.{norm}.weight", (f"{theirs}.{name}.g", None, False)
        yield f"{ours}.{norm}.bias", (f"{theirs}.{name}.b", None, False)
    yield f"{ours}.linear.weight", (f"{theirs}.ff_sel", None, False)
    for expert in range(chosen):
        for linear, name in (("linear", "ff_up"), ("linear_2", "ff_down")):
            place = (f"{theirs}.{name}", torch.tensor([expert]), True)
            yield f"{ours}.sigma_moe.experts.{expert}.{linear}.weight", place
    for head in range(heads):
        rows = torch.arange(head * size, (head + 1) * size)
        own = f"{ours}.stack.{head}"
        for linear, name in (("linear", "q"), ("linear_2", "k")):
            yield f"{own}.rotary_head.{linear}.weight", (f"{theirs}.{name}", rows, False)
        if experts == 1:
            yield f"{own}.linear.weight", (f"{theirs}.v", rows, False)
            yield f"{own}.linear_2.weight", (f"{theirs}.sel_o", torch.tensor([head]), False)
            yield f"{own}.linear_3.weight", (f"{theirs}.o", rows, True)
            continue
        choices = torch.arange(head * experts, (head + 1) * experts)
        yield f"{own}.linear.weight", (f"{theirs}.sel_v", choices, False)
        yield f"{own}.linear_2.weight", (f"{theirs}.sel_o", choices, False)
        for block, name in (("chosen_linear", "v"), ("chosen_linear_2", "o")):
            for expert in range(experts):
                place = (f"{theirs}.{name}", choices[expert : expert + 1], True)
                yield f"{own}.{block}.experts.{expert}.linear.weight", place


def places(golden: Golden) -> dict[str, Place]:
    """Returns the place of each parameter."""
    named: dict[str, Place] = {
        "embed.weight": ("embed", None, False),
        "norm.weight": ("out_ln.g", None, False),
        "norm.bias": ("out_ln.b", None, False),
        "linear.weight": ("lm.w", None, False),
        "linear.bias": ("lm.b", None, False),
    }
    for layer in range(golden.number("cfg.group")):
        named.update(layer_places(golden, layer))
    return named


def part(golden: Golden, prefix: str, place: Place) -> Tensor:
    """Returns the part of an array that belongs to a parameter."""
    name, rows, transposed = place
    array = golden[f"{prefix}.{name}"]
    if rows is None:
        return array
    if transposed and array.dim() == 2:  # the columns of an output map
        return array[:, rows]
    return array[rows].squeeze(0).T if transposed else array[rows]


def program(golden: Golden, folder: Path) -> Program:
    names = ("layers", "group", "heads", "head_dim", "ff_experts", "ff_k", "att_experts", "att_k")
    statics = {name: golden.number(f"cfg.{name}") for name in names}
    vocab, d = golden["p.embed"].shape
    weights: dict[str, str | Tensor] = {name: part(golden, "p", place) for name, place in places(golden).items()}
    return Program(
        page("moeut"), golden, weights, folder, "moeut", **statics, vocab=vocab, d=d,
        ff_width=golden.number("cfg.ff_expert_size"), causal=bool(golden.number("cfg.causal")),
    )  # fmt: skip


def entropy(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten().long(), ignore_index=-100)


@pytest.mark.goldens("modern", "moeut_lm*")
def test_a_language_model_equals_the_authors_in_logits_losses_and_gradients(golden: Golden, folder: Path) -> None:
    model = program(golden, folder)
    logits = model(golden["in.ids"].long())
    model.close(logits, "out.logits", TOLERANCE)
    auxiliary = dict(model.module.losses)
    value = golden["cfg.entropy_reg"] * auxiliary.pop("feedforward")
    if auxiliary:
        value = value + golden["cfg.att_entropy_reg"] * auxiliary.pop("attention")
    assert not auxiliary
    close(golden, value, "out.reg_loss", TOLERANCE)
    loss = entropy(logits, golden["in.targets"]) + value
    close(golden, loss, "out.loss", TOLERANCE)
    named = places(golden)
    gradients = torch.autograd.grad(loss, [model.module.get_parameter(name) for name in named])
    for (name, place), gradient in zip(named.items(), gradients, strict=True):
        expected = part(golden, "grad", place)
        largest = float(golden[f"grad.{place[0]}"].abs().max())
        torch.testing.assert_close(gradient, expected, atol=TOLERANCE * largest, rtol=0, msg=name)


@pytest.mark.goldens("modern", "moeut_padded_bidir")
def test_a_padded_encoder_equals_the_authors_at_real_positions(golden: Golden, folder: Path) -> None:
    """The program's auxiliary losses count padding too, so they are compared with its raw scores of real positions."""
    model = program(golden, folder)
    ids, lengths = golden["in.ids"].long(), golden["in.lengths"].long()
    real = torch.arange(ids.shape[1]) < lengths[:, None]
    logits = model(ids, x=lengths)
    model.close(logits, "out.logits", TOLERANCE, real)
    close(golden, entropy(logits, golden["in.targets"]), "out.ce", TOLERANCE)

    def negative_entropy(name: str) -> Tensor:
        probabilities = golden[name].softmax(-1).transpose(0, 1)  # sample, repeat, position, …
        used = torch.stack([own[:, :length].mean((0, 1)) for own, length in zip(probabilities, lengths, strict=True)])
        return (used * used.log()).sum(-1).mean()

    layers = range(golden.number("cfg.group"))
    feedforward = sum(negative_entropy(f"out.layer{layer}.ff_sel_raw") for layer in layers)
    attention = sum(negative_entropy(f"out.layer{layer}.{kind}_sel_raw") for layer in layers for kind in "vo")
    for name, expected in (("feedforward", feedforward), ("attention", attention)):
        torch.testing.assert_close(model.module.losses[name], expected, atol=TOLERANCE, rtol=0)
