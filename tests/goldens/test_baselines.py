"""The golden arrays of the baselines of the tables of NDR and PANM, against pages of the library."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.goldens.golden import Golden, Program, Weights, cell, close, gradients_close, network, pair

CASES = ("case0", "case1")


def linear(ours: str, theirs: str) -> Weights:
    return pair(ours, f"{theirs}.{{}}")


def compare_gradients(golden: Golden, case: str, loss: Tensor) -> None:
    """Compares the loss and the gradient of every array that has one."""
    close(golden, loss, f"{case}loss")
    gradients_close(golden, loss, f"{case}grad.")


def compare(golden: Golden, case: str, program: Program) -> None:
    """Compares logits, loss and gradients of a case in which blank inputs follow the inputs."""
    x, length, target = (golden[f"{case}.{name}"] for name in ("x", "len", "target"))
    logits = program(x, target.clamp(min=0), x=length + 2, target=length)
    real = target >= 0
    close(golden, logits, f"{case}.logits", where=real)
    compare_gradients(golden, f"{case}.", F.cross_entropy(logits[real], target[real]))


def page(module: str, call: str, *, blank: str = "zeros[e](target)") -> str:
    """Returns a program that applies a block of the library to one-hot inputs and blank ones."""
    return f"""
use archlang.models.{module}

model program[e: int, hidden: int, slots = 0, d = 0, heads = 0, ff = 0, layers = 0, width = 0](
    x: seq[n, e], target: tokens[t]) -> logits[t, vocab] {{
    return {call}(x, {blank}) |> linear[vocab]
}}
"""


def statics_of(golden: Golden) -> dict[str, int]:
    sizes = golden.settings
    return {"e": golden["case0.x"].shape[2], "vocab": sizes["V"], "hidden": sizes["H"]}


@pytest.mark.goldens("baselines", "lstm")
@pytest.mark.parametrize("case", CASES)
def test_an_lstm_that_starts_from_a_learned_state(golden: Golden, case: str) -> None:
    parts = cell("lstm_answers.cell", "p.lstm.{}") | linear("linear", "p.out")
    parts |= {"lstm_answers.learned.weight": "p.h0", "lstm_answers.learned_2.weight": "p.c0"}
    text = page("attentive_decoders", "lstm_answers[hidden]")
    compare(golden, case, Program(text, golden, parts, "program", **statics_of(golden)))


def attentive(golden: Golden) -> Weights:
    """Returns the weights of `attentive_answers`."""
    own, h = "attentive_answers", golden.settings["H"]
    parts = linear(f"{own}.linear", "p.emb") | linear("linear", "p.out") | cell(f"{own}.cell", "p.dec.{}")
    parts |= network(f"{own}.gru_from_zero.gru", "p.enc.f.{}") | network(f"{own}.gru_from_zero_2.gru", "p.enc.b.{}")
    if "p.att.w" in golden:
        parts[f"{own}.query.weight"] = golden["p.att.w"][:, :h]
        parts[f"{own}.key.weight"] = golden["p.att.w"][:, h:]
        parts |= {f"{own}.key.bias": "p.att.b", f"{own}.score.weight": "p.att.v"}
    if "p.loc.w" in golden:
        parts |= linear(f"{own}.place", "p.loc")
    return parts


@pytest.mark.goldens("baselines", "content_attention", "location_luong", "hybrid_attention")
@pytest.mark.parametrize("case", CASES)
def test_attention_by_content_by_location_and_by_both(golden: Golden, case: str) -> None:
    placed = {"content_attention": "", "location_luong": ", content = false", "hybrid_attention": ""}[golden.name]
    placed += ", slots = slots" if "p.loc.w" in golden else ""
    statics = statics_of(golden) | ({"slots": len(golden["p.loc.w"])} if "p.loc.w" in golden else {})
    text = page("attentive_decoders", f"attentive_answers[hidden{placed}]")
    compare(golden, case, Program(text, golden, attentive(golden), "program", **statics))


@pytest.mark.goldens("baselines", "location_attention")
@pytest.mark.parametrize("case", CASES)
def test_attention_to_places_of_the_program_of_sam(golden: Golden, case: str) -> None:
    own = "located_answers"
    parts = linear(f"{own}.linear", "p.emb") | linear("linear", "p.out") | cell(f"{own}.cell", "p.dec.{}")
    parts |= network(f"{own}.gru_from_zero.gru", "p.enc.{}") | linear(f"{own}.read", "p.dec_emb")
    parts |= linear(f"{own}.place", "p.loc") | linear(f"{own}.combine", "p.combine")
    text = page("attentive_decoders", "located_answers[hidden, slots]", blank="zeros[vocab](target)")
    statics = statics_of(golden) | {"slots": len(golden["p.loc.w"])}
    compare(golden, case, Program(text, golden, parts, "program", **statics))


@pytest.mark.goldens("baselines", "transformer")
@pytest.mark.parametrize("case", CASES)
def test_a_transformer_that_reads_blank_inputs(golden: Golden, case: str) -> None:
    sizes = golden.settings
    layers = len({name.split(".")[0] for name in golden.names("p.l")})
    d = sizes["D"]
    own = "transformer_answers"
    parts = linear(f"{own}.linear", "p.emb") | linear("linear", "p.out")
    for layer in range(layers):
        ours, theirs = f"{own}.stack.{layer}.biased_layer", f"p.l{layer}"
        for kind in ("weight", "bias"):
            thirds = golden[f"{theirs}.{kind[0]}_qkv"].chunk(3)
            names = [f"{ours}.{name}.{kind}" for name in ("linear", "linear_2", "linear_3")]
            parts |= zip(names, thirds, strict=True)
        parts |= linear(f"{ours}.linear_4", f"{theirs}.wo")
        parts |= linear(f"{ours}.feedforward.hidden", f"{theirs}.ff1")
        parts |= linear(f"{ours}.feedforward.output", f"{theirs}.ff2")
        parts |= pair(f"{ours}.norm", f"{theirs}.ln1.{{}}", "gb") | pair(f"{ours}.norm_2", f"{theirs}.ln2.{{}}", "gb")
    text = page("attentive_decoders", "transformer_answers[d, heads, ff, layers]")
    statics = statics_of(golden) | {"d": d, "heads": sizes["nh"], "ff": sizes["ff"], "layers": layers}
    compare(golden, case, Program(text, golden, parts, "program", **statics))


NDR = """
model program[hidden: int, embedding: int, layers: int](x: tokens[n]) -> logits[classes] {
    h = embed[embedding, frozen = 1](x)
    return READ |> linear[classes]
}
"""


def compare_classes(golden: Golden, program: Program, end: bool, logits: str = "logits") -> None:
    """Compares a classifier of the tokens; with `end`, of the tokens and an end token, the last of the embedding."""
    length = golden["len"]
    tokens = F.pad(golden["tokens"], (0, 1))
    tokens[torch.arange(len(length)), length] = len(golden["p.emb"]) - 1
    y = program(tokens, x=length + end)
    close(golden, y, logits)
    if logits == "logits":
        compare_gradients(golden, "", F.cross_entropy(y, golden["target"]))


def ndr_statics(golden: Golden) -> dict[str, int]:
    sizes = golden.settings
    names = {"hidden": "H", "embedding": "E", "layers": "layers", "classes": "classes"}
    return {ours: sizes[theirs] for ours, theirs in names.items()} | {"vocab": len(golden["p.emb"])}


@pytest.mark.goldens("baselines", "lstm_ndr")
def test_an_lstm_that_classifies_a_sequence(golden: Golden) -> None:
    parts = linear("linear", "p.out") | {"embed.weight": "p.emb"}
    for layer in range(golden.settings["layers"]):
        parts |= network("lstm.lstm", f"p.lstm{layer}.{{}}", f"_l{layer}")
    text = NDR.replace("READ", "last(lstm[hidden, layers](h))")
    # The program reads the end token too, but classifies by the state before it.
    compare_classes(golden, Program(text, golden, parts, "program", **ndr_statics(golden)), end=False)


@pytest.mark.goldens("baselines", "bilstm_ndr")
@pytest.mark.parametrize(("reads", "logits"), [("misread", "logits"), ("last_layer", "logits_intended")])
def test_a_bidirectional_lstm_that_classifies_a_sequence(golden: Golden, reads: str, logits: str) -> None:
    parts = linear("linear", "p.out") | {"embed.weight": "p.emb"}
    for layer in range(golden.settings["layers"]):
        for ours, theirs in (("forward", "f"), ("backward", "b")):
            parts |= network(f"bilstm_final.{ours}_layers.{layer}", f"p.lstm{layer}.{theirs}.{{}}")
    text = NDR.replace("READ", f"bilstm_final[hidden, layers, reads = {reads}](h)")
    compare_classes(golden, Program(text, golden, parts, "program", **ndr_statics(golden)), True, logits)


@pytest.mark.goldens("baselines", "neural_stack")
@pytest.mark.parametrize("case", CASES)
def test_a_neural_stack(golden: Golden, case: str) -> None:
    own = "neural_stack"
    parts = cell(f"{own}.cell", "p.lstm.{}") | linear("linear", "p.out") | linear(f"{own}.output", "p.o")
    for name in ("push", "pop", "value"):
        parts |= linear(f"{own}.{name}", f"p.{name}")
    text = page("neural_stack", "neural_stack[hidden, width]")
    statics = statics_of(golden) | {"width": len(golden["p.value.w"])}
    compare(golden, case, Program(text, golden, parts, "program", **statics))


STACK = """
use archlang.models.neural_stack

model program[d: int, queue = false](value: seq[n, d], push: seq[n, 1], pop: seq[n, 1]) -> seq[n, d] {
    return stack_reads[queue](value, push, pop)
}
"""


@pytest.mark.goldens("baselines", "neural_stack_core")
@pytest.mark.parametrize("kind", ["stack", "queue"])
def test_a_stack_and_a_queue_that_are_pushed_and_popped_by_amounts(golden: Golden, kind: str) -> None:
    fields = [golden[name].requires_grad_() for name in ("value", "push", "pop")]
    value, push, pop = fields[0], fields[1][..., None], fields[2][..., None]
    program = Program(STACK, golden, {}, "program", d=value.shape[2], queue=kind == "queue")
    read = program(value, push, pop)
    close(golden, read, f"{kind}.read")
    gradients_close(golden, (read * golden["probe"]).sum(), f"{kind}.grad_")


ESBN = """
use archlang.models.emergent_symbols

model program[e: int, hidden: int, key: int, wide: int, narrow: int, width: int](
    x: seq[n, e], target: tokens[t]) -> logits[t, vocab] {
    return emergent_symbols[hidden, key, wide, narrow, width](x, zeros[1](target)) |> linear[vocab]
}
"""
ESBN_ONCE = ESBN.replace(", target: tokens[t]) -> logits[t, vocab]", ") -> logits[vocab]").replace(
    "zeros[1](target)) |>", "constant[1, 1]()) |> last |>"
)


def binding(golden: Golden) -> Weights:
    """Returns the weights of `emergent_symbols`."""
    own = "emergent_symbols"
    parts = cell(f"{own}.bound_states.cell", "p.lstm.{}") | linear("linear", "p.out")
    for index, name in enumerate(("linear", "linear_2", "linear_3")):
        parts |= linear(f"{own}.{name}", f"p.enc{index + 1}")
    parts |= linear(f"{own}.bound_states.write", "p.key") | linear(f"{own}.bound_states.gate", "p.gate")
    parts |= {
        f"{own}.bound_states.learned.weight": golden["p.conf.gain"] - 1,
        f"{own}.bound_states.learned_2.weight": "p.conf.bias",
    }
    parts |= {
        f"{own}.context_norm.learned.weight": golden["p.norm.gamma"] - 1,
        f"{own}.context_norm.learned_2.weight": "p.norm.beta",
    }
    return parts


@pytest.mark.goldens("baselines", "esbn_seq")
@pytest.mark.parametrize("case", CASES)
def test_emergent_symbols_that_answer_symbol_by_symbol(golden: Golden, case: str) -> None:
    compare(golden, case, Program(ESBN, golden, binding(golden), "program", **binding_statics(golden)))


def binding_statics(golden: Golden) -> dict[str, int]:
    sizes = golden.settings
    names = {"key": "K", "wide": "E1", "narrow": "E2", "width": "Z"}
    return statics_of(golden) | {ours: sizes[theirs] for ours, theirs in names.items()}


@pytest.mark.goldens("baselines", "esbn")
@pytest.mark.parametrize("case", CASES)
def test_emergent_symbols_that_answer_once(golden: Golden, case: str) -> None:
    program = Program(ESBN_ONCE, golden, binding(golden), "program", **binding_statics(golden))
    logits = program(golden[f"{case}.x"], x=golden[f"{case}.len"])
    close(golden, logits, f"{case}.logits")
    compare_gradients(golden, f"{case}.", F.cross_entropy(logits, golden[f"{case}.target"]))


POINTED = """
use archlang.models.pointer_network

model program[e: int, hidden: int](x: seq[n, e], target: tokens[t]) -> logits[t, vocab] {
    return slice_features[0, vocab](weigh(pointed[hidden](x, zeros[1](target)), x))
}
"""


@pytest.mark.goldens("baselines", "ptrnet_panm")
@pytest.mark.parametrize("case", CASES)
def test_pointers_that_weigh_symbols(golden: Golden, case: str) -> None:
    own = "pointed"
    parts = cell(f"{own}.lstm_states.cell", "p.enc.{}") | cell(f"{own}.cell", "p.dec.{}")
    parts |= linear(f"{own}.linear", "p.emb")
    parts |= linear(f"{own}.linear", "p.emb")
    parts |= {f"{own}.linear_2.weight": "p.att.w1", f"{own}.linear_3.weight": "p.att.w2"}
    parts |= {f"{own}.linear_4.weight": "p.att.v"}
    compare(golden, case, Program(POINTED, golden, parts, "program", **statics_of(golden)))


VISITED = """
use archlang.models.pointer_network

model program[e: int, d: int, hidden: int, layers: int, both: bool](x: seq[n, e]) -> logits[n, n] {
    return visited[hidden, layers, both](linear[d](x))
}
"""


@pytest.mark.goldens("baselines", "ptrnet", "ptrnet_bi")
@pytest.mark.parametrize("case", CASES)
def test_pointers_that_visit_each_point_once(golden: Golden, case: str) -> None:
    sizes = golden.settings
    own = "visited"
    parts = linear("linear", "p.emb") | linear(f"{own}.query", "p.att.q") | linear(f"{own}.linear", "p.att.k")
    parts |= linear(f"{own}.combine", "p.dec.out")
    parts |= {f"{own}.score.weight": "p.att.v", f"{own}.learned.weight": "p.dec.x0"}
    parts |= linear(f"{own}.cell.linear", "p.dec.in") | linear(f"{own}.cell.linear_2", "p.dec.rec")
    for layer in range(sizes["layers"]):
        encoder = f"{own}.encoder_states" if layer == 0 else f"{own}.stack.{layer - 1}.encoder_states"
        parts |= cell(f"{encoder}.lstm_states.cell", f"p.enc{layer}.f.{{}}")
        if sizes["bidir"]:
            parts |= cell(f"{encoder}.lstm_states_2.cell", f"p.enc{layer}.b.{{}}")
    statics = {"e": golden["p.emb.w"].shape[1], "d": sizes["E"], "hidden": sizes["H"], "layers": sizes["layers"]}
    program = Program(VISITED, golden, parts, "program", both=bool(sizes["bidir"]), **statics)
    x, length, target = (golden[f"{case}.{name}"] for name in ("x", "len", "target"))
    probs = program(x, x=length)[..., 0]
    real = target >= 0
    close(golden, probs, f"{case}.probs")
    loss = torch.cat(
        [F.cross_entropy(p[:n, :n], t[:n], reduction="none") for p, n, t in zip(probs, length, target, strict=True)]
    )
    assert real.sum() == len(loss)
    compare_gradients(golden, f"{case}.", loss.mean())
