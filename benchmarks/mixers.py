"""Layers with linear-time mixers against layers with softmax attention, by length, and pages against their blocks."""

import os
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from archlang.backend.kernels.flash_recurrence import SWITCH
from archlang.backend.runtime.linear_recurrence import Terms, linear_recurrence
from benchmarks.measure import Call, Case, Group, Setting, Sides

PROGRAM = """
use archlang.models.linear_mixers
use archlang.models.linear_recurrences
use archlang.models.rwkv

block delta_net_by_position[heads: int](x: seq[n, d]) -> seq[n, d] {
    q = unit_norm[heads](silu(linear[d, bias = false](x)))
    k = unit_norm[heads](silu(linear[d, bias = false](x)))
    v = silu(linear[d, bias = false](x))
    beta = sigmoid(linear[heads, bias = false](x))
    y = delta_rule_by_position[heads](q, k, v, beta, constant[d / heads, d]())
    return linear[d, bias = false](rms_norm[heads](y))
}

block rwkv7_mixer[heads: int](x: seq[n, d]) -> seq[n, d] {
    return rwkv7_time_mix[heads, 32, 32, 64](x, linear[d, bias = false](x))
}

model layers[mixer: block, d = 256](x: seq[n, d]) -> seq[n, d] {
    stack 2 {
        x <- x + mixer(rms_norm(x))
        x <- x + feedforward[4 * d](rms_norm(x))
    }
    return x
}
"""
HEADS = 4
POSITIONS = 4096
"""positions of a batch, all samples together"""
LENGTHS = (512, 1024, 2048)
ATTENTION = f"attention[heads = {HEADS}, causal = true, position = rotary]"
MIXERS = {
    "DeltaNet": f"delta_net[heads = {HEADS}]",
    "gated DeltaNet": f"gated_delta_net[heads = {HEADS}]",
    "GLA": f"gated_linear_attention[heads = {HEADS}]",
    "RetNet": f"multi_scale_retention[heads = {HEADS}]",
    "Mamba-2": f"state_space[heads = {2 * HEADS}, states = 64]",
    "RWKV-7": f"rwkv7_mixer[heads = {HEADS}]",
}


def _model(mixer: str, setting: Setting) -> nn.Module:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "mixers.arch"
        path.write_text(PROGRAM.replace("mixer: block", f"mixer: block = {mixer}"), encoding="utf-8")
        sizes: dict[str, Any] = {"d": 32} if setting.tiny else {}  # Any: statics are of several kinds
        return archlang.load(path, "layers", **sizes).to(setting.device)


def _step(mixer: str, length: int, setting: Setting) -> Call:
    """Returns a training step: forward, backward, and the gradients of all weights."""
    torch.manual_seed(0)
    module = _model(mixer, setting)
    samples = 2 if setting.tiny else max(1, POSITIONS // length)
    x = torch.randn(samples, length, 32 if setting.tiny else 256, device=setting.device)

    def call() -> None:
        module.zero_grad()
        module(x).square().mean().backward()

    return call


def _sides(ours: str, theirs: str, length: int, setting: Setting) -> Sides:
    return Sides(_step(ours, length, setting), _step(theirs, length, setting))


def _growth(mixer: str, short: int, long: int, setting: Setting) -> Sides:
    return Sides(_step(mixer, long, setting), _step(mixer, short, setting))


def _cases(setting: Setting) -> Iterator[Case]:
    for name, mixer in MIXERS.items():
        on_gpus = (8192,) if setting.device.type == "cuda" else ()
        for length in (7,) if setting.tiny else LENGTHS + on_gpus:
            build = partial(_sides, mixer, ATTENTION, length, setting)
            yield Case(f"layers with {name}, length {length}", "layers with attention", build)
    for name, mixer in {**MIXERS, "attention": ATTENTION}.items():
        short, long = (7, 14) if setting.tiny else (LENGTHS[0], LENGTHS[-1])
        build = partial(_growth, mixer, short, long, setting)
        yield Case(f"layers with {name}, length {long} and {short}", f"length {short}", build)
    length = 7 if setting.tiny else 512
    build = partial(_sides, MIXERS["DeltaNet"], f"delta_net_by_position[heads = {HEADS}]", length, setting)
    yield Case(f"layers with DeltaNet, length {length}", "its page, one position at a time", build)


def recurrences(length: int, setting: Setting) -> dict[str, tuple[Terms, Call]]:
    """Returns by name the terms of a recurrence as ours reads them, and the kernel of flash-linear-attention for them,
    which has the positions before the heads."""
    ops: Any = import_module("fla.ops")  # Any: the package has no types
    general: Any = import_module("fla.ops.generalized_delta_rule")
    heads, d, kind = 16, 16 if setting.tiny else 64, torch.float32 if setting.device.type == "cpu" else torch.bfloat16
    torch.manual_seed(0)
    q, k, v, a = (torch.randn(2, heads, length, d, device=setting.device, dtype=kind) / d**0.5 for _ in range(4))
    k = F.normalize(k, dim=-1)
    beta, g = torch.rand_like(q[..., :1]), -torch.rand_like(q)
    by_head = g[..., :1]
    t = partial(torch.transpose, dim0=1, dim1=2)
    return {
        "delta rule": (
            (q, k, beta * v, None, k, -beta),
            partial(ops.chunk_delta_rule, t(q), t(k), t(v), t(beta)[..., 0], scale=1.0),
        ),
        "gated delta rule": (
            (q, k, beta * v, by_head, k, -beta * by_head.exp()),
            partial(ops.chunk_gated_delta_rule, t(q), t(k), t(v), t(by_head)[..., 0], t(beta)[..., 0], scale=1.0),
        ),
        "a decay for each feature": (
            (q, k, v, g, None, None), partial(ops.chunk_gla, t(q), t(k), t(v), t(g), scale=1.0),
        ),
        "a decay for each head": (
            (q, k, v, by_head, None, None),
            partial(ops.chunk_simple_gla, t(q), t(k), t(v), t(by_head)[..., 0], scale=1.0),
        ),
        "a diagonal and a product of two vectors": (
            (q, k, v, g, a, -0.5 * a),
            partial(general.chunk_dplr_delta_rule, t(q), t(k), t(v), t(a), t(-0.5 * a), t(g), scale=1.0),
        ),
    }  # fmt: skip


def _kernels(name: str, length: int, setting: Setting) -> Sides:
    terms, theirs = recurrences(length, setting)[name]

    def ours() -> Tensor:
        return linear_recurrence(*terms)[0]

    difference = (ours().float() - theirs()[0].transpose(1, 2).float()).norm() / ours().float().norm()
    print(f"{name}, length {length}: the relative difference of the results is {difference:.1e}", flush=True)
    return Sides(ours, theirs)


def _switched(name: str, length: int, setting: Setting) -> Sides:
    """Our form, forward and backward, with and without the switch to the kernels; prints how far results and gradients
    differ."""
    terms, _ = recurrences(length, setting)[name]
    leaves = [term.detach().requires_grad_() for term in terms if term is not None]
    places = [index for index, term in enumerate(terms) if term is not None]

    def run(switch: str) -> list[Tensor]:
        arguments: list[Tensor | None] = [None] * len(terms)
        for place, leaf in zip(places, leaves, strict=True):
            arguments[place] = leaf
        with patch.dict(os.environ, {SWITCH: switch}):
            o, _ = linear_recurrence(*arguments)  # type: ignore[arg-type]  # the first three are there
        return [o, *torch.autograd.grad(o.float().square().sum(), leaves)]

    pairs = zip(run("1"), run("0"), strict=True)
    differences = [f"{(on.float() - off.float()).norm() / off.float().norm():.1e}" for on, off in pairs]
    print(f"{name}, length {length}, switched on: relative differences {', '.join(differences)}", flush=True)
    return Sides(partial(run, "1"), partial(run, "0"))


def _kernel_cases(setting: Setting) -> Iterator[Case]:
    for name in RECURRENCES if setting.tiny or setting.device.type == "cuda" else ():
        for length in (7,) if setting.tiny else (2048, 8192):
            yield Case(f"{name}, length {length}", "flash-linear-attention", partial(_kernels, name, length, setting))
            build = partial(_switched, name, length, setting)
            yield Case(f"{name}, length {length}, switched on, forward and backward", "switched off", build)


RECURRENCES = (
    "delta rule", "gated delta rule", "a decay for each feature", "a decay for each head",
    "a diagonal and a product of two vectors",
)  # fmt: skip
GROUP = Group(
    "mixers",
    f"Forward and backward of two layers, d 256, ff 1024, {HEADS} heads, {POSITIONS} positions a batch at each length.",
    _cases,
)
KERNELS = Group(
    "linear recurrences", "In bf16, 2 samples, 16 heads of width 64; forward unless a row says more.", _kernel_cases
)  # fmt: skip
