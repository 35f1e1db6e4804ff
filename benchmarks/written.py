"""Attention that a page writes with maps, against the block of the library with equal products."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from archlang.backend import Architecture
from archlang.compile import load_named
from archlang.source import Source
from benchmarks.comparison import ModelPair, training_step
from benchmarks.measure import Case, Group, Setting, Sides

_PROGRAM = Path(__file__).with_name("written.arch")
_VOCAB = 64
# The forms, and the position of the block that stands beside each.
FORMS = {
    "softmax_attention": "none",
    "by_distance": "alibi",
    "by_distance[learned_bias = true]": "none",
    "soft_cap": "none",
    "window": "none",
    "forgetting": "none",
    "contextual": "none",
}
LENGTHS = (128, 512, 1024, 2048)
BATCH, WIDTH = 2, 128


def _layer(form: str, setting: Setting) -> Architecture:
    torch.manual_seed(0)
    d = 16 if setting.tiny else WIDTH
    text = _PROGRAM.read_text(encoding="utf-8").replace("f: block = softmax_attention", f"f: block = {form}")
    sets = {"model.d": str(d), "model.vocab": str(_VOCAB)}
    return load_named(Source(str(_PROGRAM), text), "layer", None, sets)


def _block(form: str) -> str:
    return f"built_in[position = {FORMS[form]}]"


def model_pair(form: str, length: int, setting: Setting) -> ModelPair:
    """Returns a layer of a form and one of the block, and a loss on random tokens."""
    tokens = torch.randint(_VOCAB, (BATCH, length), device=setting.device)

    def loss(module: nn.Module) -> Tensor:
        result: Tensor = module(tokens)
        return result.square().mean()

    return ModelPair(_layer(form, setting), _layer(_block(form), setting), loss)


def _decoding(form: str, length: int, setting: Setting) -> Sides:
    """Returns the decoding of twenty tokens after a prompt, by either side."""
    prompt = torch.randint(_VOCAB, (BATCH, length), device=setting.device)
    ours, theirs = (_layer(each, setting).to(setting.device).eval() for each in (form, _block(form)))
    return Sides(*(partial(module.decode, begin=prompt, limit=20) for module in (ours, theirs)))


def _cases(setting: Setting) -> Iterator[Case]:
    for form in FORMS:
        for length in (7,) if setting.tiny else LENGTHS:
            build = partial(training_step, partial(model_pair, form, length), setting)
            yield Case(f"{form}, N = {length}, forward and backward", "the block", build)
        length = 7 if setting.tiny else 800
        yield Case(f"{form}, 20 tokens after {length}", "the block", partial(_decoding, form, length, setting))


GROUP = Group("written", f"Batch {BATCH}, {WIDTH} features, 4 heads, causal.", _cases)
