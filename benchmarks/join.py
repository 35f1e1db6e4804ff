"""Models whose linear maps of one value are one product, beside the same models with each map by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend import Architecture
from archlang.names.library import module_file
from benchmarks.measure import Case, Group, Setting
from benchmarks.trial import Trial, cases_of

_ROUTER, _HALT, _SEQ2SEQ = "archlang.models.data_router", "archlang.models.dynamic_halt", "archlang.models.seq2seq"
_CTL = {"d": 256, "heads": 1, "ff": 512, "steps": 14}
_LISTOPS = {"d": 512, "heads": 16, "ff": 1024, "steps": 20}
_GUT = {"d": 128, "heads": 8, "ff": 512, "depth": 10, "threshold": 1.0}
_GUTLB = {"d": 128, "heads": 8, "ff": 256, "size": 10, "slots": 10, "threshold": 1.0}
_SCAN = {"d": 128, "heads": 8, "ff": 256, "layers": 3, "universal": True}
# File, model, statics, batch, length.
MODELS: Mapping[str, tuple[str, str, Mapping[str, float], int, int]] = {
    "NDR, table lookup": (_ROUTER, "ndr", _CTL, 512, 12),
    "NDR, table lookup, batch 8": (_ROUTER, "ndr", _CTL, 8, 12),
    "NDR, ListOps": (_ROUTER, "ndr", _LISTOPS, 64, 40),
    "NDR, ListOps, batch 1": (_ROUTER, "ndr", _LISTOPS, 1, 40),
    "GUT": (_HALT, "gated_universal_transformer", _GUT, 32, 50),
    "GUT, batch 4": (_HALT, "gated_universal_transformer", _GUT, 4, 50),
    "GUTLB": (_HALT, "gated_universal_latent_bottleneck", _GUTLB, 32, 100),
    "GUTLB, batch 4": (_HALT, "gated_universal_latent_bottleneck", _GUTLB, 4, 100),
    "universal Transformer, SCAN": (_SEQ2SEQ, "seq2seq", _SCAN, 256, 20),
    "universal Transformer, SCAN, batch 16": (_SEQ2SEQ, "seq2seq", _SCAN, 16, 20),
}
_TINY = {"d": 16, "heads": 2, "ff": 16, "steps": 2, "depth": 2, "layers": 2}
_SIZES = {"vocab": 17, "words": 17, "classes": 10}


def pair(name: str, tiny: bool) -> tuple[Architecture, Architecture]:
    """With the pass and without it, the same weights."""
    file, model, statics, _, _ = MODELS[name]
    path = module_file(file)
    assert path is not None
    sizes = {key: _TINY.get(key, value) if tiny else value for key, value in statics.items()}
    needed = {key: size for key, size in _SIZES.items() if key != "words" or model == "seq2seq"}
    modules = []
    for without in ((), ("join",)):
        torch.manual_seed(0)
        modules.append(archlang.load(path, model, without_passes=without, **needed, **sizes))
    first, second = modules
    return first, second


def _trial(name: str, setting: Setting) -> Trial:
    _, model, _, batch, length = MODELS[name]
    batch, length = (3, 5) if setting.tiny else (batch, length)
    torch.manual_seed(1)
    x = torch.randint(0, _SIZES["vocab"], (batch, length), device=setting.device)

    def loss(module: torch.nn.Module) -> Tensor:
        if model == "seq2seq":
            return F.cross_entropy(module(x, x).flatten(0, 1), x.flatten())
        return F.cross_entropy(module(x), x[:, 0] % _SIZES["classes"])

    return Trial(*pair(name, setting.tiny), loss)


def _cases(setting: Setting) -> Iterator[Case]:
    trials = {f"join, {name}": partial(_trial, name) for name in MODELS}
    return cases_of(trials, setting, "each map by itself")


GROUP = Group("join", "The batch is that of the paper's settings, or a small one.", _cases)
