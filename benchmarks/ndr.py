"""NDR compiled from its page, beside the same written by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from benchmarks.handwritten_ndr import Ndr
from benchmarks.measure import Case

_FILE = Path(__file__).parent / "ndr.arch"
# By hand, and as archlang names them.
NAMES = {
    "embed": "embed",
    "attention": "geometric_attention",
    "norm": "norm",
    "hidden": "feedforward.hidden",
    "update": "feedforward.output",
    "update_norm": "norm_2",
    "gate_hidden": "feedforward_2.hidden",
    "gate": "feedforward_2.output",
    "classify": "linear",
}


@dataclass(frozen=True)
class Size:
    """What is measured: a model, and a batch."""

    name: str
    vocab: int
    classes: int
    d: int
    heads: int
    ff: int
    steps: int
    batch: int
    length: int


CTL = Size("NDR, table lookup", vocab=21, classes=8, d=256, heads=1, ff=512, steps=14, batch=512, length=12)
LISTOPS = Size("NDR, ListOps", vocab=17, classes=10, d=512, heads=16, ff=1024, steps=20, batch=64, length=40)


def pair(size: Size) -> tuple[nn.Module, Ndr]:
    """Both modules with the same weights."""
    torch.manual_seed(0)
    theirs = Ndr(size.vocab, size.classes, size.d, size.heads, size.ff, size.steps)
    ours = archlang.load(
        _FILE, vocab=size.vocab, classes=size.classes, d=size.d, heads=size.heads, ff=size.ff, steps=size.steps
    )
    weights = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        parameter.data.copy_(weights[_by_hand(name)].data.view_as(parameter))
    return ours, theirs


def _by_hand(name: str) -> str:
    head = max((ours for ours in NAMES.values() if name.startswith(f"{ours}.")), key=len)
    mine = next(hand for hand, ours in NAMES.items() if ours == head)
    return f"{mine}{name.removeprefix(head)}"


def batch(size: Size) -> tuple[Tensor, Tensor, Tensor]:
    """Tokens, lengths, and answers; lengths differ, as those of a sorted batch do."""
    torch.manual_seed(1)
    lengths = torch.randint(size.length - 3, size.length + 1, (size.batch,))
    lengths[0] = size.length
    tokens = torch.randint(0, size.vocab, (size.batch, size.length))
    return tokens, lengths, torch.randint(0, size.classes, (size.batch,))


def cases() -> Iterator[Case]:
    for size in (CTL, LISTOPS):
        ours, theirs = pair(size)
        tokens, lengths, answers = batch(size)

        beside = "plain torch, by hand"
        for name, step in (("forward and backward", _train), ("forward", _evaluate)):
            mine = partial(step, ours, tokens, lengths, answers)
            yield Case(f"{size.name}, {name}", mine, partial(step, theirs, tokens, lengths, answers), beside)


def _train(module: nn.Module, tokens: Tensor, lengths: Tensor, answers: Tensor) -> None:
    module.zero_grad(set_to_none=True)
    loss = F.cross_entropy(module(tokens, lengths=lengths), answers)
    loss.backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def _evaluate(module: nn.Module, tokens: Tensor, lengths: Tensor, _answers: Tensor) -> None:
    module(tokens, lengths=lengths)
