"""Layers with linear-time mixers against layers with softmax attention, by length, and pages against their blocks."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import nn

import archlang
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
    samples = 2 if setting.tiny else POSITIONS // length
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
        for length in (7,) if setting.tiny else LENGTHS:
            build = partial(_sides, mixer, ATTENTION, length, setting)
            yield Case(f"layers with {name}, length {length}", "layers with attention", build)
    for name, mixer in {**MIXERS, "attention": ATTENTION}.items():
        short, long = (7, 14) if setting.tiny else (LENGTHS[0], LENGTHS[-1])
        build = partial(_growth, mixer, short, long, setting)
        yield Case(f"layers with {name}, length {long} and {short}", f"length {short}", build)
    length = 7 if setting.tiny else 512
    build = partial(_sides, MIXERS["DeltaNet"], f"delta_net_by_position[heads = {HEADS}]", length, setting)
    yield Case(f"layers with DeltaNet, length {length}", "its page, one position at a time", build)


GROUP = Group(
    "mixers",
    f"Forward and backward of two layers, d 256, ff 1024, {HEADS} heads, {POSITIONS} positions a batch at each length.",
    _cases,
)
