"""UT, GUT, TLB and GUTLB compiled from the library against the same models written by hand."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from archlang.backend import Architecture
from archlang.resolve.library import library_file
from benchmarks.comparison import ModelPair, cases_of, share_weights
from benchmarks.halting import spread_depths
from benchmarks.handwritten_halt import Bottleneck, Universal
from benchmarks.measure import Case, Group, Setting

_FFN = {"hidden.": "0.", "output.": "2."}
_GATED = {f"gate.{ours}": f"gate.{hand}" for ours, hand in _FFN.items()}
_FEEDFORWARD = {f"feedforward.{ours}": f"feedforward.{hand}" for ours, hand in _FFN.items()}
_LAYER = {"before.": "before.", "norm.": "norm.", "attention.": "attention.", **_FEEDFORWARD, **_GATED}
_CHUNK_LAYER = {
    **{f"norm{ours}.": f"norms.{hand}." for hand, ours in enumerate(("", "_2", "_3", "_4"))},
    "attention.": "attention.",
    "attention_2.": "cross.",
    **_FEEDFORWARD,
    **_GATED,
}
_UPDATE = {
    **{f"norm{ours}.": f"norms.{hand}." for hand, ours in enumerate(("", "_2", "_3"))},
    "attention.": "attention.",
    **_FEEDFORWARD,
}
# From archlang's names to the handwritten modules'.
NAMES = {
    "embed.": "embed.",
    "start_end.": "",
    "mlp.hidden.": "hidden.",
    "mlp.output.": "classify.",
    "read.norm.": "norm.",
    "read.learned.weight": "memory",
    **{f"read.halting_layer.{ours}": f"layer.{hand}" for ours, hand in _LAYER.items()},
    **{
        f"read.{block}.{ours}": f"halt.map.{hand}"
        for block in ("token_halt", "global_halt")
        for ours, hand in _FFN.items()
    },
    **{f"read.chunk_layer.{ours}": f"layers.0.{hand}" for ours, hand in _CHUNK_LAYER.items()},
    **{
        f"read.stack.{i}.chunk_layer.{ours}": f"layers.{i}.{hand}"
        for i in range(2)
        for ours, hand in _CHUNK_LAYER.items()
    },
    **{f"read.memory_update.stack.0.{ours}": f"update.{hand}" for ours, hand in _UPDATE.items()},
}


@dataclass(frozen=True)
class Size:
    """The sizes of a model and its batch."""

    model: str
    depth: int
    mean: float
    """mean number of steps until samples halt; 0 if the model does not halt"""
    chunk: int = 0
    d: int = 512
    heads: int = 8
    ff: int = 1024
    batch: int = 32
    length: int = 100


SIZES = {
    "UT": Size("universal_transformer", depth=10, mean=5),
    "GUT": Size("gated_universal_transformer", depth=10, mean=5),
    "TLB": Size("temporal_latent_bottleneck", depth=2, mean=0, chunk=20),
    "GUTLB": Size("gated_universal_latent_bottleneck", depth=5, mean=3, chunk=20),
}
_VOCAB, _CLASSES = 17, 10


def tiny(size: Size) -> Size:
    return replace(size, chunk=min(size.chunk, 4), d=16, heads=2, ff=24, batch=3, length=11)


def pair(size: Size) -> tuple[Architecture, nn.Module]:
    """Returns both modules with equal weights; samples halt at different depths."""
    torch.manual_seed(0)
    gated = size.model.startswith("gated")
    theirs: nn.Module
    # Any: values of several kinds
    statics: dict[str, Any] = {"d": size.d, "heads": size.heads, "ff": size.ff, "dropout": 0.0}
    if size.chunk:
        statics |= {"size": size.chunk, "slots": size.chunk, "balanced": True, "slot_init": "normal"}
        theirs = Bottleneck(_VOCAB, _CLASSES, size.d, size.heads, size.ff, size.depth, size.chunk, size.chunk, gated)
        nn.init.normal_(theirs.memory)
    else:
        theirs = Universal(_VOCAB, _CLASSES, size.d, size.heads, size.ff, size.depth, gated)
    statics["layers" if size.model == "temporal_latent_bottleneck" else "depth"] = size.depth
    page = library_file("archlang.models.dynamic_halt")
    assert page is not None
    ours = archlang.load(page, size.model, vocab=_VOCAB, classes=_CLASSES, **statics)
    share_weights(ours, theirs, NAMES)
    if size.mean:
        tokens, lengths, _ = batch(size)
        few = slice(0, 8)
        with torch.no_grad():
            spread_depths(ours, size.mean, size.depth, lambda: ours(tokens[few], lengths=lengths[few]))
        _copy_halting(ours, theirs)
    return ours, theirs


def _copy_halting(ours: Architecture, theirs: nn.Module) -> None:
    output = next(module for name, module in ours.named_modules() if name.endswith("_halt.output"))
    theirs.get_submodule("halt.map.2").load_state_dict(output.state_dict())


def batch(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Returns tokens, lengths and answers. Lengths differ by at most a tenth, as in a batch sorted by length."""
    torch.manual_seed(1)
    lengths = torch.randint(size.length - size.length // 10, size.length + 1, (size.batch,))
    lengths[0] = size.length
    tokens = torch.randint(0, _VOCAB, (size.batch, size.length))
    return tokens, lengths, torch.randint(0, _CLASSES, (size.batch,))


def model_pair(size: Size, setting: Setting) -> ModelPair:
    tokens, lengths, answers = (tensor.to(setting.device) for tensor in batch(size))

    def loss(module: nn.Module) -> Tensor:
        cross_entropy = F.cross_entropy(module(tokens, lengths=lengths), answers)
        if not size.mean:
            return cross_entropy
        ponder = module.ponder
        assert isinstance(ponder, Tensor)
        return cross_entropy + 0.1 * ponder

    return ModelPair(*pair(size), loss)


def _model_pair(size: Size, setting: Setting) -> ModelPair:
    return model_pair(tiny(size) if setting.tiny else size, setting)


MODEL_PAIRS = {f"{name}, ListOps": partial(_model_pair, size) for name, size in SIZES.items()}
# Chunks of few rows.
SMALL_BATCHES = {
    f"{name}, batch 2, length 512": partial(_model_pair, replace(SIZES[name], batch=2, length=512))
    for name in ("TLB", "GUTLB")
}


def _cases(setting: Setting) -> Iterator[Case]:
    return cases_of({**MODEL_PAIRS, **SMALL_BATCHES}, setting, "plain torch, by hand, halted samples masked")


GROUP = Group(
    "dynamic halt",
    "ListOps: batch 32, length 90 to 100, d 512, 8 heads, ff 1024, no dropout. UT and GUT: at most 10 steps, 5 on "
    "average; TLB: 2 layers; GUTLB: at most 5 steps, 3 on average; chunks of 20, 20 slots. A row may name "
    "another batch and length.",
    _cases,
)
