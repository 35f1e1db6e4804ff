"""A Gated Universal Transformer whose halted samples leave the batch, beside the same with the whole batch masked."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import archlang
from archlang.backend import Architecture, halting_loops
from benchmarks.measure import Case

_FILE = Path(archlang.__file__).parent / "blocks" / "models" / "dynamic_halt.arch"
LIMIT, MEAN = 20, 8.0
BATCH, LENGTH = 32, 100
# So much do the halting logits of untrained samples have to be told apart, to halt at different depths.
_CONTRAST = 60.0


def gut(mean: float) -> tuple[Architecture, Tensor]:
    """The model of ListOps with a batch, whose samples halt after `mean` steps on average: the bias of the halting map
    is searched for. With `mean` at the limit, nobody halts."""
    torch.manual_seed(0)
    module = archlang.load(
        _FILE, "gated_universal_transformer", vocab=17, classes=10, d=128, heads=8, ff=512, depth=LIMIT, dropout=0.0
    ).eval()
    tokens = torch.randint(0, 17, (BATCH, LENGTH))
    (loop,) = halting_loops(module)
    output = loop.block.get_submodule("output")
    weight, bias = output.get_parameter("weight"), output.get_parameter("bias")
    low, high = -80.0, 40.0
    with torch.no_grad():
        weight.mul_(_CONTRAST)
        while mean < LIMIT and high - low > 1e-3:
            bias.fill_((low + high) / 2)
            module(tokens)
            assert module.mean_depth is not None
            low, high = (float(bias), high) if float(module.mean_depth) > mean else (low, float(bias))
        if mean >= LIMIT:
            bias.fill_(-1e4)
    return module, tokens


def cases() -> Iterator[Case]:
    for mean, what in ((MEAN, f"mean depth {MEAN:g} of {LIMIT}"), (LIMIT, "nobody halts")):
        module, tokens = gut(mean)
        for name, step in (("forward and backward", _train), ("forward", _evaluate)):
            ours, theirs = (partial(step, module, tokens, compact) for compact in (True, False))
            yield Case(f"GUT, {what}, {name}", ours, theirs, "the whole batch, masked")


def _train(module: Architecture, tokens: Tensor, compact: bool) -> None:
    module.zero_grad(set_to_none=True)
    loss = F.cross_entropy(_run(module, tokens, compact), torch.zeros(len(tokens), dtype=torch.int64))
    (loss + 0.1 * module.ponder).backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def _evaluate(module: Architecture, tokens: Tensor, compact: bool) -> None:
    _run(module, tokens, compact)


def _run(module: Architecture, tokens: Tensor, compact: bool) -> Tensor:
    for loop in halting_loops(module):
        loop.compact = compact
    result: Tensor = module(tokens)
    return result
