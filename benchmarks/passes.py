"""Models with a compiler pass, or with archlang's dropout, against the same models without it."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend import Architecture
from archlang.kernels import dropout as kernel
from archlang.names.library import library_file
from benchmarks.comparison import ModelPair, cases_of, train
from benchmarks.measure import Case, Group, Setting, Sides

_ROUTER, _HALT, _SEQ2SEQ = "archlang.models.data_router", "archlang.models.dynamic_halt", "archlang.models.seq2seq"
_CTL = {"d": 256, "heads": 1, "ff": 512, "steps": 14}
_LISTOPS = {"d": 512, "heads": 16, "ff": 1024, "steps": 20}
_GUT = {"d": 128, "heads": 8, "ff": 512, "depth": 10, "threshold": 1.0}
_GUTLB = {"d": 128, "heads": 8, "ff": 256, "size": 10, "slots": 10, "threshold": 1.0}
_TLB = {"d": 128, "heads": 8, "ff": 256, "size": 10, "slots": 10}
_SCAN = {"d": 128, "heads": 8, "ff": 256, "layers": 3, "universal": True}


@dataclass(frozen=True)
class Size:
    """A library model and the sizes of its batch."""

    file: str
    model: str
    statics: Mapping[str, float]
    batch: int
    length: int


_NDR = Size(_ROUTER, "ndr", _CTL, 512, 12)
_ROUTED = Size(_ROUTER, "ndr", _LISTOPS, 64, 40)
_GATED = Size(_HALT, "gated_universal_transformer", _GUT, 32, 50)
_TRANSLATED = Size(_SEQ2SEQ, "seq2seq", _SCAN, 256, 20)
_LATENT = Size(_HALT, "temporal_latent_bottleneck", _TLB, 32, 100)
_BOTH = Size(_HALT, "gated_universal_latent_bottleneck", _GUTLB, 32, 100)
# Keys: the pass that the baseline omits.
MODELS: Mapping[str, Mapping[str, Size]] = {
    "join": {
        "NDR, table lookup": _NDR,
        "NDR, table lookup, batch 8": replace(_NDR, batch=8),
        "NDR, ListOps": _ROUTED,
        "NDR, ListOps, batch 1": replace(_ROUTED, batch=1),
        "GUT": _GATED,
        "GUT, batch 4": replace(_GATED, batch=4),
        "GUTLB": _BOTH,
        "GUTLB, batch 4": replace(_BOTH, batch=4),
        "universal Transformer, SCAN": _TRANSLATED,
        "universal Transformer, SCAN, batch 16": replace(_TRANSLATED, batch=16),
    },
    "batch_chunks": {
        "TLB": _LATENT,
        "TLB, batch 4": replace(_LATENT, batch=4),
        "TLB, batch 4, length 1000": replace(_LATENT, batch=4, length=1000),
        "GUTLB": _BOTH,
        "GUTLB, batch 4": replace(_BOTH, batch=4),
        "GUTLB, batch 4, length 1000": replace(_BOTH, batch=4, length=1000),
    },
}
# Models that are also measured with torch's own dropout; all of them use dropout by default.
DROPPING = ("NDR, table lookup", "NDR, ListOps", "GUT", "universal Transformer, SCAN")
_TINY = {"d": 16, "heads": 2, "ff": 16, "steps": 2, "depth": 2, "layers": 2}
_SIZES = {"vocab": 17, "words": 17, "classes": 10}


def pair(name: str, size: Size, tiny: bool) -> tuple[Architecture, Architecture]:
    """Returns the model with the pass and without it, with equal weights."""
    path = library_file(size.file)
    assert path is not None
    statics: dict[str, Any] = {key: count for key, count in _SIZES.items() if key != "words" or size.model == "seq2seq"}
    statics.update((key, _TINY.get(key, value) if tiny else value) for key, value in size.statics.items())
    modules = []
    for without in ((), (name,)):
        torch.manual_seed(0)
        modules.append(archlang.load(path, size.model, without_passes=without, **statics))
    first, second = modules
    return first, second


def _model_pair(name: str, size: Size, setting: Setting) -> ModelPair:
    batch, length = (3, 25) if setting.tiny else (size.batch, size.length)
    torch.manual_seed(1)
    x = torch.randint(0, _SIZES["vocab"], (batch, length), device=setting.device)

    def loss(module: torch.nn.Module) -> Tensor:
        if size.model == "seq2seq":
            return F.cross_entropy(module(x, x).flatten(0, 1), x.flatten())
        return F.cross_entropy(module(x), x[:, 0] % _SIZES["classes"])

    return ModelPair(*pair(name, size, setting.tiny), loss)


def _dropout_sides(size: Size, setting: Setting) -> Sides:
    """Returns training steps with archlang's dropout and with torch's."""
    trial = _model_pair("join", size, setting)
    module = trial.ours.to(setting.device).train()
    return Sides(partial(train, module, trial.loss), partial(_with_torch_dropout, partial(train, module, trial.loss)))


def _with_torch_dropout(step: Callable[[], None]) -> None:
    with patch.object(kernel, "LEAST", sys.maxsize):
        step()


def _cases(setting: Setting) -> Iterator[Case]:
    for model in DROPPING:
        size = MODELS["join"][model]
        yield Case(f"dropout, {model}, training step", "torch's own dropout", partial(_dropout_sides, size, setting))
    for name, sizes in MODELS.items():
        trials = {f"{name}, {model}": partial(_model_pair, name, size) for model, size in sizes.items()}
        yield from cases_of(trials, setting, f"the model without the pass `{name}`")


GROUP = Group("passes", "The batch is that of the paper's settings, or a small one.", _cases)
