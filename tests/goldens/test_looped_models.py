"""Models of loops against the arrays of the authors' programs: looped transformers, Huginn, TRM and HRM."""

from collections.abc import Mapping, Sequence
from math import sqrt

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.runtime.block import judging
from archlang.backend.runtime.carried_steps import CarriedStates
from archlang.backend.runtime.loops import RepeatLoop
from archlang.train.settings import stablemax_entropy
from tests.goldens.golden import TOLERANCE, Golden, Program, Weights, close, gradients_close, pair


def leaves_of(golden: Golden) -> dict[str, Tensor]:
    return {name: golden[f"p.{name}"] for name in golden.names("p.")}


# Looped transformers


def layer_of_gpt(golden: Golden, layer: str, to: str) -> Weights:
    weights = pair(f"{to}.norm", f"p.{layer}.ln_1.{{}}", "gb") | pair(f"{to}.norm_2", f"p.{layer}.ln_2.{{}}", "gb")
    for kind, letter in (("weight", "w"), ("bias", "b")):
        parts = golden[f"p.{layer}.qkv.{letter}"].chunk(3)
        weights |= zip([f"{to}.{name}.{kind}" for name in ("linear", "linear_2", "linear_3")], parts, strict=True)
    for name, source in (("linear_4", "o"), ("linear_5", "ff1"), ("linear_6", "ff2")):
        weights |= pair(f"{to}.{name}", f"p.{layer}.{source}.{{}}")
    return weights


@pytest.mark.goldens("modern", "looped_*")
def test_looped_transformer(golden: Golden) -> None:
    p, block = leaves_of(golden), "looped_transformer"
    slots, d = p["pos"].shape
    weights = pair("linear", "p.read_in.{}") | {f"{block}.positions.weight": p["pos"]}
    for layer in range(golden.number("cfg.layers")):
        weights |= layer_of_gpt(golden, f"layer{layer}", f"{block}.stack.{layer}.gpt_layer")
    weights |= pair(f"{block}.final", "p.ln_f.{}", "gb") | pair(f"{block}.readout", "p.read_out.{}")
    injection = "product" if golden.name.endswith("mul") else "sum"
    settings = (
        f"1, {golden.number('cfg.heads')}, {p['layer0.ff1.b'].numel()}, {slots}, {golden.number('cfg.loops')}, "
        f"{golden.number('cfg.window')}, {golden.number('cfg.layers')}, {injection}"
    )
    xs, ys = golden["in.xs"], golden["in.ys"]
    text = (
        f"use archlang.models.looped_transformer\nmodel m(x: seq[n, {xs.shape[-1]}]) -> seq[n, 1] {{\n"
        f"    return looped_transformer[{settings}](linear[{d}](x))\n}}\n"
    )
    prompt = torch.stack([xs, F.pad(ys[..., None], (0, xs.shape[-1] - 1))], 2).flatten(1, 2)
    program = Program(text, golden, weights)
    with program.module.keeping_steps() as step_results:
        last = program(prompt)[:, 0::2, 0]
    predictions = torch.stack([result[:, 0::2, 0] for result in step_results.values])
    close(golden, predictions, "out.pred")
    torch.testing.assert_close(last, predictions[-1], rtol=0, atol=1e-5)
    loss = (predictions - ys).square().mean()
    close(golden, loss, "obj.value")
    gradients_close(golden, loss)


# Huginn


def in_halves(rows: Tensor, heads: int) -> Tensor:
    """The rows of queries or keys, or their biases, with each adjacent pair in the two halves of a head."""
    return rows.reshape(heads, len(rows) // heads // 2, 2, -1).transpose(1, 2).reshape(rows.shape)


def sandwich(p: Mapping[str, Tensor], layer: str, to: str) -> Weights:
    query, key, value = p[f"{layer}.qkv"].chunk(3)
    heads = p[f"{layer}.qk_bias"].shape[2]
    query_bias, key_bias = (in_halves(bias, heads) for bias in p[f"{layer}.qk_bias"].flatten(1))
    query, key = in_halves(query, heads), in_halves(key, heads)
    gate, up = p[f"{layer}.gate_up"].chunk(2)
    weights: Weights = {
        f"{to}.rms_norm{'' if i == 1 else f'_{i}'}.weight": p[f"{layer}.norm{i}.g"] for i in range(1, 5)
    }
    linears = (query, key, value, p[f"{layer}.o"], gate, up, p[f"{layer}.down"])
    weights |= {f"{to}.linear{'' if i == 0 else f'_{i + 1}'}.weight": weight for i, weight in enumerate(linears)}
    return weights | {f"{to}.linear.bias": query_bias, f"{to}.linear_2.bias": key_bias}


@pytest.mark.goldens("modern", "huginn")
def test_huginn(golden: Golden) -> None:
    p, block, d = leaves_of(golden), "recurrent_depth", golden.number("cfg.d")
    counts = {name: golden.number(f"cfg.{name}_layers") for name in ("prelude", "core", "coda")}
    weights: Weights = {"table.weight": p["embed"], f"{block}.adapter.weight": p["adapter"]}
    weights[f"{block}.final.weight"] = p["ln_f.g"]
    for (name, count), stack in zip(counts.items(), ("stack", "stack_2", "stack_3"), strict=True):
        for layer in range(count):
            weights |= sandwich(p, f"{name}{layer}", f"{block}.{stack}.{layer}.sandwich_layer")
    ff = p["core0.down"].shape[1]

    def logits_after(steps: int, gradient_steps: int) -> Tensor:
        settings = (
            f"{golden.number('cfg.heads')}, {ff}, {steps}, {gradient_steps}, {', '.join(map(str, counts.values()))}"
        )
        text = (
            f"use archlang.models.recurrent_depth\nmodel m(x: tokens[n], s: seq[n, {d}]) -> logits[n, vocab] {{\n"
            f"    let table = embed[{d}, scaling = token_upscaling]\n    return unembed[table, bias = false]("
            f"recurrent_depth[{settings}, base = {float(golden.arrays['cfg.rope_base'])}](table(x), s))\n}}\n"
        )
        return Program(text, golden, weights, vocab=len(p["embed"]))(golden["in.ids"], golden["in.s0"])

    gradient_steps = golden.number("cfg.steps_grad")
    logits = logits_after(golden.number("cfg.steps_no_grad") + gradient_steps, gradient_steps)
    close(golden, logits, "out.logits")
    loss = F.cross_entropy(logits.flatten(0, 1), golden["in.labels"].flatten(), ignore_index=-100)
    close(golden, loss, "out.loss")
    gradients_close(golden, loss)
    for name in golden.names("eval.r"):
        close(golden, logits_after(int(name.partition(".")[0]), 0), f"eval.r{name}")


# TRM and HRM


def interleaved(rows: Tensor, heads: int) -> Tensor:
    """The rows of queries or keys, with the pairs of their rotation next to each other."""
    width, d = rows.shape
    return rows.view(heads, 2, width // heads // 2, d).transpose(1, 2).reshape(width, d)


def reasoning(p: Mapping[str, Tensor], layer: str, to: str, heads: int) -> Weights:
    query, key, value = p[f"{layer}.qkv"].chunk(3)
    gate, up = p[f"{layer}.gate_up"].chunk(2)
    return {
        f"{to}.attention.query.weight": interleaved(query, heads),
        f"{to}.attention.key.weight": interleaved(key, heads),
        f"{to}.attention.value.weight": value,
        f"{to}.attention.output.weight": p[f"{layer}.o"],
        f"{to}.linear.weight": gate,
        f"{to}.linear_2.weight": up,
        f"{to}.linear_3.weight": p[f"{layer}.down"],
    }


def mixing(p: Mapping[str, Tensor], layer: str, to: str) -> Weights:
    halves = (
        *p[f"{layer}.t_gate_up"].chunk(2),
        p[f"{layer}.t_down"],
        *p[f"{layer}.gate_up"].chunk(2),
        p[f"{layer}.down"],
    )
    return {f"{to}.linear{'' if i == 0 else f'_{i + 1}'}.weight": weight for i, weight in enumerate(halves)}


def labelled_mean(losses: Tensor, labels: Tensor) -> Tensor:
    """The mean loss of each row over its labelled positions."""
    is_labelled = labels != -100
    return (losses * is_labelled).sum(-1) / is_labelled.sum(-1).clamp(min=1)


@pytest.mark.goldens("modern", "trm_att", "trm_mlp", "hrm", "hrm_learned_pos")
def test_recursive_reasoning(golden: Golden) -> None:
    """Three training steps of the program with carried states, and its evaluation."""
    p, heads, d = leaves_of(golden), golden.number("cfg.heads"), golden.number("cfg.d")
    slots, most = golden.number("cfg.plen"), golden.number("cfg.max")
    is_hrm, is_mixer = golden.name.startswith("hrm"), "layer0.t_down" in p
    turns, place = ("judged_turns", "hierarchical_recursion") if is_hrm else ("supervised_turns", "tiny_recursion")
    position = {"rope": "rotary", "learned": "none", "none": "none"}[str(golden.arrays["cfg.pos"])]
    positions = slots + golden["in0.inputs"].shape[1]
    ff = next(value.shape[1] for name, value in p.items() if name.endswith(".down"))
    layer = f"reasoning_layer[{heads}, {ff}, {position}]"
    if is_mixer:
        layer = f"reasoning_mixer[{positions}, {p['layer0.t_down'].shape[1]}, {ff}]"
    weights: Weights = {}
    networks = []
    for network, source in {"f": "L.", "g": "H."}.items() if is_hrm else [("f", "")]:
        count = sum(name.startswith(f"{source}layer") and name.endswith(".down") for name in p)
        networks.append(f"reasoning_network[{count}, {layer}]")
        for index in range(count):
            to = f"{turns}.step.{'recursion.' if is_mixer else ''}{network}.stack.{index}.layer"
            source_layer = f"{source}layer{index}"
            weights |= mixing(p, source_layer, to) if is_mixer else reasoning(p, source_layer, to, heads)
    recursion = f"{place}[{golden.number('cfg.H_cycles')}, {golden.number('cfg.L_cycles')}, {', '.join(networks)}]"
    if is_mixer:
        recursion = f"on_positions[{positions}, {recursion}]"
    text = (
        f"use archlang.models.recursive_reasoning\nmodel m(x: seq[n, {d}]) -> logits[n, {len(p['lm'])}] {{\n"
        f"    return {turns}[{len(p['lm'])}, {most}, {recursion}](x)\n}}\n"
    )
    judged = 2 if is_hrm else 1
    judge = f"{turns}.{'judge' if is_hrm else 'halt'}"
    # The page subtracts the first value of the bias.
    weights |= {f"{judge}.weight": p["q.w"][:judged], f"{judge}.bias": p["q.b"][:judged] + 5}
    weights |= {f"{turns}.head.weight": p["lm"]}
    weights[f"{turns}.fixed_state.learned.weight"] = torch.cat([p["H_init"], p["L_init"]])[None]
    module = Program(text, golden, weights).module
    loop = module.loop_of_results()
    assert isinstance(loop, RepeatLoop)

    def embedded(tokens: Tensor, puzzle_rows: Tensor) -> Tensor:
        rows = F.pad(puzzle_rows, (0, slots * d - puzzle_rows.shape[1])).view(-1, slots, d)
        x = torch.cat([rows, p["embed"][tokens.long()]], 1)
        return sqrt(d) * (0.707106781 * (x + p["pos"]) if "pos" in p else x)

    names = ("inputs", "labels", "puzzle_identifiers")
    current = {name: golden[f"in0.{name}"] for name in names}
    states: Sequence[Tensor] = ()
    halted = torch.ones(len(current["inputs"]), dtype=torch.bool)
    steps = torch.zeros(len(halted), dtype=torch.long)
    for t in range(3):
        step = f"step{t}."
        for name, rows in current.items():
            chosen = halted.view(-1, *[1] * (rows.dim() - 1))
            current[name] = torch.where(chosen, golden[f"in{t}.{name}"], rows)
            assert current[name].equal(golden[f"{step}cur.{name}"])
        puzzle_rows = p["puzzle"][current["puzzle_identifiers"].long()].detach().requires_grad_()
        labels = current["labels"]

        def is_right(answer: Tensor, labels: Tensor = labels) -> Tensor:
            return ((answer[:, slots:].argmax(-1) == labels) | (labels == -100)).all(-1)

        loop.carried = CarriedStates(~halted, states)
        with judging(module, is_right):
            logits = module(embedded(current["inputs"], puzzle_rows))[:, slots:]
        states = loop.carried.states
        close(golden, states[0][..., :d], f"{step}zH")
        close(golden, states[0][..., d:], f"{step}zL")
        close(golden, logits, f"{step}logits")
        steps = torch.where(halted, 0, steps) + 1
        halted = (steps >= most) | (module.sample_losses["halted"] > 0)
        assert halted.equal(golden[f"{step}halted"])
        batch = len(labels)
        answer_loss = labelled_mean(stablemax_entropy(logits, labels.clamp(min=0).long()), labels).sum()
        close(golden, answer_loss, f"{step}lm_loss", TOLERANCE * batch)
        close(golden, module.losses["halting"] * batch, f"{step}q_halt_loss", TOLERANCE * batch)
        loss = answer_loss + 0.5 * batch * torch.stack([*module.losses.values()]).sum()
        loss = loss - 0.5 * batch * module.losses["halted"]
        if is_hrm:
            close(golden, module.losses["continuing"] * batch, f"{step}q_continue_loss", TOLERANCE * batch)
        close(golden, loss, f"{step}loss", TOLERANCE * batch)
        if t != 1:
            gradients_close(golden, loss, f"{step}grad.", given={"puzzle_rows": puzzle_rows})
    loop.carried = None
    with module.keeping_steps() as step_results:
        module(embedded(golden["in0.inputs"], p["puzzle"][golden["in0.puzzle_identifiers"].long()]))
    answers = torch.stack(step_results.values)[:, :, slots:]
    close(golden, answers, "eval.logits")
