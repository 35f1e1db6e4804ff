"""PANM on copy, compiled from its page, beside the same step by step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import archlang
from benchmarks.handwritten_panm import Panm
from benchmarks.measure import Case

_FILE = Path(archlang.__file__).parent / "blocks" / "models" / "panm.arch"
VOCAB, BATCH, LENGTH = 12, 128, 9
_MEMORY = "recurrent_panm.pointer_memory."
# By archlang's names, and by hand.
NAMES = {
    "recurrent_panm.gru_from_zero.gru.": "ahead.",
    "recurrent_panm.gru_from_zero_2.gru.": "back.",
    f"{_MEMORY}relational_read.read.pointed.": "pointed.",
    f"{_MEMORY}relational_read.read.": "related.",
    f"{_MEMORY}attentive_gru.": "",
    "linear.": "classify.",
    **{
        f"{_MEMORY}{ours}": f"units.{i}.{hand}"
        for i in range(2)
        for ours, hand in {
            f"pointer_unit.pointers.{i}.cell.": "cell.",
            f"pointer_unit.pointers.{i}.score.state_map.": "state_map.",
            f"pointer_unit.pointers.{i}.score.address_map.": "address_map.",
            f"pointer_unit.pointers.{i}.score.": "attention.",
            f"dereference.value.{i}.": "attention.value.",
            f"dereference.output.{i}.": "attention.output.",
        }.items()
    },
}


def pair() -> tuple[nn.Module, Panm]:
    """Both modules with the same weights."""
    torch.manual_seed(0)
    theirs = Panm(VOCAB)
    ours = archlang.load(_FILE, "panm_bigru", vocab=VOCAB)
    weights = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        head = max((one for one in NAMES if name.startswith(one)), key=len)
        parameter.data.copy_(weights[NAMES[head] + name.removeprefix(head)].data)
    return ours, theirs


def batch(length: int = LENGTH) -> tuple[Tensor, Tensor]:
    """A batch of copy: what is read, and what is to be written."""
    torch.manual_seed(1)
    symbols = torch.randint(0, 10, (BATCH, length))
    ends = torch.full((BATCH, 1), 1)
    return torch.cat((11 * ends, symbols, 10 * ends), 1), symbols


def cases() -> Iterator[Case]:
    ours, theirs = pair()
    source, target = batch()
    for name, step in (("forward and backward", _train), ("forward", _evaluate)):
        mine, beside = partial(step, ours, source, target), partial(step, theirs, source, target)
        yield Case(f"PANM, copy, {name}", mine, beside, "step by step, by hand")


def _train(module: nn.Module, source: Tensor, target: Tensor) -> None:
    module.zero_grad(set_to_none=True)
    loss = F.cross_entropy(module(source, target).flatten(0, 1), target.flatten())
    loss.backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def _evaluate(module: nn.Module, source: Tensor, target: Tensor) -> None:
    module(source, target)
