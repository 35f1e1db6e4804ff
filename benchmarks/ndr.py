"""NDR compiled from its `.arch` file against NDR written by hand."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from benchmarks.comparison import ModelPair, cases_of, share_weights
from benchmarks.handwritten_ndr import Ndr
from benchmarks.measure import Case, Group, Setting

_FILE = Path(__file__).parent / "ndr.arch"
# From archlang's names to the handwritten module's.
NAMES = {
    "embed.": "embed.",
    "geometric_attention.": "attention.",
    "norm.": "norm.",
    "feedforward.hidden.": "hidden.",
    "feedforward.output.": "update.",
    "norm_2.": "update_norm.",
    "feedforward_2.hidden.": "gate_hidden.",
    "feedforward_2.output.": "gate.",
    "linear.": "classify.",
}


@dataclass(frozen=True)
class Size:
    """The sizes of a model and its batch."""

    vocab: int
    classes: int
    d: int
    heads: int
    ff: int
    steps: int
    batch: int
    length: int


CTL = Size(vocab=21, classes=8, d=256, heads=1, ff=512, steps=14, batch=512, length=12)
LISTOPS = Size(vocab=17, classes=10, d=512, heads=16, ff=1024, steps=20, batch=64, length=40)
_TINY = {"d": 16, "heads": 2, "ff": 24, "steps": 2, "batch": 3, "length": 7}


def pair(size: Size) -> tuple[nn.Module, Ndr]:
    """Returns both modules with equal weights."""
    torch.manual_seed(0)
    theirs = Ndr(size.vocab, size.classes, size.d, size.heads, size.ff, size.steps)
    ours = archlang.load(
        _FILE, vocab=size.vocab, classes=size.classes, d=size.d, heads=size.heads, ff=size.ff, steps=size.steps
    )
    share_weights(ours, theirs, NAMES)
    return ours, theirs


def batch(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Returns tokens, lengths and answers. Lengths differ by at most 3, as in a batch sorted by length."""
    torch.manual_seed(1)
    lengths = torch.randint(size.length - 3, size.length + 1, (size.batch,))
    lengths[0] = size.length
    tokens = torch.randint(0, size.vocab, (size.batch, size.length))
    return tokens, lengths, torch.randint(0, size.classes, (size.batch,))


def model_pair(size: Size, setting: Setting) -> ModelPair:
    tokens, lengths, answers = (tensor.to(setting.device) for tensor in batch(size))
    return ModelPair(*pair(size), lambda module: F.cross_entropy(module(tokens, lengths=lengths), answers))


def _model_pair(size: Size, setting: Setting) -> ModelPair:
    return model_pair(replace(size, **_TINY) if setting.tiny else size, setting)


MODEL_PAIRS = {"NDR, table lookup": partial(_model_pair, CTL), "NDR, ListOps": partial(_model_pair, LISTOPS)}


def _cases(setting: Setting) -> Iterator[Case]:
    return cases_of(MODEL_PAIRS, setting, "plain torch, by hand")


GROUP = Group(
    "ndr",
    "Table lookup: batch 512, length 12, d 256, 14 steps; ListOps: batch 64, length 40, d 512, 16 heads, 20 steps.",
    _cases,
)
